#include "cxl-emul/faults/fault_plan.h"

#include <algorithm>
#include <utility>

#include "cxl-emul/faults/fault_table.h"
#include "cxl-emul/faults/lies.h"

namespace memtide::emul {
namespace {

// The level whose command the fault is about; it has none when no opcode is given: then it is the whole
// answer.
std::optional<std::size_t> level_struck(const Fault& fault, const std::vector<TunnelLevel>& levels) {
    if (!fault.opcode) return 0;
    for (std::size_t i = 0; i < levels.size(); ++i)
        if (levels[i].request.opcode == *fault.opcode) return i;
    return std::nullopt;
}

void change_tag(fmapi::MctpMessage& answer, FaultRandom& random) {
    answer.message.tag = static_cast<std::uint8_t>(answer.message.tag + 1 + draw_below(random, 255));
    answer.route.tag = static_cast<std::uint8_t>((answer.route.tag + 1 + draw_below(random, 7)) & 7);
}

Disturbance::Delivery dripping(const WireBytes& bytes, std::chrono::milliseconds pause) {
    Disturbance::Delivery delivery;
    for (const std::byte one : bytes) delivery.pieces.push_back({pause, {one}});
    return delivery;
}

// What is done to the packets of an answer; false when it does nothing to these.
bool spoil(ActiveFault& active, WireBytes& bytes) {
    const Fault& fault = active.fault();
    switch (fault.kind) {
        case FaultKind::kCorrupt:
            corrupt(bytes, std::max<std::size_t>(fault.bytes, 1), active.random());
            return true;
        case FaultKind::kTruncate:
            truncate(bytes, fault.bytes, active.random());
            return true;
        case FaultKind::kHangUp:
            truncate(bytes, fault.bytes, active.random());
            return true;
        case FaultKind::kReorder:
            return reorder_packets(bytes, active.random());
        case FaultKind::kDuplicate:
            duplicate_packet(bytes, active.random());
            return true;
        default:
            return false;
    }
}

OperationKind kind_of(const Operation& operation) { return static_cast<OperationKind>(operation.index()); }

}  // namespace

ActiveFault::ActiveFault(Fault fault, FaultPlace place, std::uint64_t seed)
    : fault_(std::move(fault)), place_(std::move(place)), random_(fault_.seed.value_or(seed)) {
    fault_.seed = fault_.seed.value_or(seed);
}

bool ActiveFault::strikes() {
    if (exhausted() || seen_++ < fault_.skip) return false;
    if (fault_.probability < 1 && !draw_chance(random_, fault_.probability)) return false;
    ++hits_;
    return true;
}

std::optional<fmapi::Message> FaultPlan::refuse(const fmapi::MctpMessage& request) {
    std::optional<std::vector<TunnelLevel>> levels;
    for (const auto& active : faults_) {
        if (active->fault().kind != FaultKind::kError) continue;
        if (!levels) levels = levels_of(request);
        const auto level = level_struck(active->fault(), *levels);
        if (level && active->strikes()) return refused_at(*levels, *level, active->fault().code);
    }
    return std::nullopt;
}

bool FaultPlan::is_about(const FaultPlace& place, const TunnelLevel& level) const {
    if (!level.port) return false;
    const PortConfig* port = config_.port(*level.port);
    return port != nullptr && place.device == port->device && (!place.port || place.port == level.port);
}

void FaultPlan::lie(const std::vector<TunnelLevel>& levels, fmapi::Message& answer) {
    for (const auto& active : faults_) {
        if (active->fault().kind != FaultKind::kLyingDevice || !is_about(active->place(), levels.back()))
            continue;
        change_innermost(levels, answer, [&](const TunnelLevel& level, fmapi::Message& inner) {
            if (tell_lie(active->fault(), level, inner)) (void)active->strikes();
        });
    }
}

Disturbance::Delivery FaultPlan::deliver(const fmapi::MctpMessage& request, fmapi::MctpMessage answer,
                                         const fmapi::WireFormat& format) {
    if (faults_.empty()) return {{{std::chrono::milliseconds(0), fmapi::to_packets(answer, format)}}, false};
    const std::vector<TunnelLevel> levels = levels_of(request);
    lie(levels, answer.message);
    // The message first, then its packets, then how they are sent; each in the order of the faults'
    // beginning.
    std::vector<ActiveFault*> struck;
    for (const auto& active : faults_) {
        const Fault& fault = active->fault();
        if (row_of(fault.kind).layer != FaultLayer::kAnswer || fault.kind == FaultKind::kError) continue;
        const bool one_packet =
            fmapi::kHeaderSize + answer.message.payload.size() < fmapi::kPacketPayloadSize;
        if (fault.kind == FaultKind::kReorder && one_packet) continue;
        if (level_struck(fault, levels) && active->strikes()) struck.push_back(active.get());
    }
    for (ActiveFault* active : struck)
        if (active->fault().kind == FaultKind::kWrongTag) change_tag(answer, active->random());
    WireBytes bytes = fmapi::to_packets(answer, format);
    Delivery delivery;
    std::chrono::milliseconds late{0};
    std::optional<std::chrono::milliseconds> drip;
    bool silent = false;
    for (ActiveFault* active : struck) {
        (void)spoil(*active, bytes);
        const Fault& fault = active->fault();
        silent |= fault.kind == FaultKind::kSilence;
        delivery.hang_up |= fault.kind == FaultKind::kHangUp;
        if (fault.kind == FaultKind::kLate) late += fault.delay;
        if (fault.kind == FaultKind::kDrip) drip = fault.delay;
    }
    if (silent) return delivery;
    if (drip)
        delivery.pieces = dripping(bytes, *drip).pieces;
    else
        delivery.pieces.push_back({std::chrono::milliseconds(0), std::move(bytes)});
    delivery.pieces.front().after += late;
    return delivery;
}

bool FaultPlan::swallows_notification() {
    for (const auto& active : faults_) {
        const Fault& fault = active->fault();
        const bool about = !fault.opcode || *fault.opcode == fmapi::Opcode::kEventNotification;
        if (fault.kind == FaultKind::kSilence && about && active->strikes()) return true;
    }
    return false;
}

Disturbance::Course FaultPlan::course_of(const SwitchModel& model, const Operation& operation) {
    Course course;
    const auto device = device_index_of(model, operation);
    for (const auto& active : faults_) {
        const Fault& fault = active->fault();
        if (row_of(fault.kind).layer != FaultLayer::kOperation) continue;
        const bool erases = fault.kind == FaultKind::kEraseDoesNothing;
        if (erases && kind_of(operation) != OperationKind::kSanitize) continue;
        if (fault.operation && *fault.operation != kind_of(operation)) continue;
        const auto& place = active->place().device;
        if (place && (!device || *place != model.devices[*device].config.name)) continue;
        if (!active->strikes()) continue;
        if (fault.kind == FaultKind::kSlowOperation) course.longer += fault.delay;
        if (fault.kind == FaultKind::kStuckOperation) course.held = active->holds();
        if (fault.kind == FaultKind::kFailingOperation) course.ends_with = fault.code;
        if (erases) course.erases = false;
    }
    return course;
}

}  // namespace memtide::emul
