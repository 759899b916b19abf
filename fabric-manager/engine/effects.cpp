// What a step does to a switch. All of it may be repeated.
#include <algorithm>

#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/dynamic_capacity.h"
#include "fabric-manager/engine/read_switch.h"

namespace memtide::fm {

namespace {

// A device that lists after that what was taken back by force is asked again later, so that others get their
// turn at its switch.
constexpr Milliseconds kWithdrawTime{5000};

}  // namespace

Target Core::target_of(const LdAddress& memory, std::uint8_t port) {
    if (memory.ld == kWholeDevice) return Target::device(port);
    return Target::logical_device(port, static_cast<std::uint8_t>(memory.ld.value));
}

// Asks at growing intervals, the first time at once: an operation that takes no time costs no pause.
Async<Result<>> Core::follow_background(SwitchId switch_id, Target target, fmapi::Opcode operation,
                                        std::optional<PartRef> ref) {
    FmApiClient& client = *switches_.at(switch_id)->client;
    const SteadyTime began = std::chrono::steady_clock::now();
    std::chrono::microseconds interval = config_.timing.background_poll_min;
    const bool forced_before = ref && ref->part().forced;
    bool aborted = false;
    Result<> result;
    for (;;) {
        // A managed removal that a host never answers is given up when the release is forced meanwhile.
        if (ref && ref->part().forced && !forced_before && !aborted &&
            operation == fmapi::Opcode::kUnbindVppb) {
            aborted = true;
            const Result<> asked = co_await client.abort_background(target);
            if (!asked)
                log::warning("the switch does not abort an unbind",
                             {{"switch", switch_id}, {"error", asked.error()}});
        }
        const Result<fmapi::BackgroundOperationStatusResponse> status =
            co_await client.background_status(target);
        if (!status) {
            result = std::unexpected(status.error());
            break;
        }
        if (!status->running()) {
            // Another manager's operation may have followed ours: then what is true is read from the switch.
            if (status->opcode == operation && status->return_code != fmapi::ReturnCode::kSuccess)
                result = fail(fmapi::error_code_of(status->return_code),
                              fmt::format("{} of {} {}: {}", fmapi::to_string(operation), to_string(target),
                                          switch_id.value, fmapi::to_string(status->return_code)));
            else if (status->opcode != operation && operation == fmapi::Opcode::kSanitize)
                result = fail(ErrorCode::kProtocol,
                              fmt::format("{} does not remember the sanitize it began", to_string(target)));
            break;
        }
        if (std::chrono::steady_clock::now() - began > config_.timing.background_timeout) {
            result = fail(ErrorCode::kTimeout,
                          fmt::format("{} of {} {} does not end ({} % after {} s)",
                                      fmapi::to_string(operation), to_string(target), switch_id.value,
                                      status->percent(), static_cast<int>(since_ms(began) / 1000)));
            break;
        }
        co_await pause_us(interval);
        if (stopping_) {
            result = fail(ErrorCode::kCancelled, "the manager is stopping");
            break;
        }
        interval =
            std::min<std::chrono::microseconds>(interval + interval / 2, config_.timing.background_poll_max);
    }
    if (ref) ref->job().waited_ms += since_ms(began);
    co_return result;
}

Async<Result<>> Core::look_at_vcs(const VppbAddress& where) {
    const VppbAddress address = where;
    const Result<std::vector<Vppb>> vppbs =
        co_await read_vppbs(*switches_.at(address.switch_id)->client, address.vcs);
    if (!vppbs) {
        // What was done to it has not been seen: nothing is decided before it has.
        doubt(address.switch_id);
        co_return std::unexpected(vppbs.error());
    }
    inventory_.apply(address.switch_id, address.vcs, *vppbs);
    co_return Result<>();
}

Async<Result<>> Core::bind(PartRef ref) {
    const VppbAddress where = ref.part().where;
    fmapi::BindVppbRequest request;
    request.vcs = where.vcs;
    request.vppb = where.vppb;
    request.port = ref.part().port;
    const Device* device = inventory_.device(ref.part().memory.device);
    const bool is_sld = device != nullptr && device->kind == DeviceKind::kSld;
    request.ld = is_sld ? kWholeDevice.value : ref.part().memory.ld.value;
    const SwitchState& state = *switches_.at(where.switch_id);
    const Result<Completion> answer = co_await state.client->bind(request, state.connection);
    // From here on a host may have written to it, unless the switch was too busy to begin.
    if (answer || answer.error().code != ErrorCode::kConflict) inventory_.set_clean(ref.part().memory, false);
    Result<> result;
    if (!answer) {
        result = std::unexpected(answer.error());
    } else if (*answer == Completion::kInBackground) {
        // It may well be over by now, and then one look says all.
        const Result<> over = co_await look_at_vcs(where);
        if (!over) co_return over;
        if (switch_view(ref).vppb == VppbView::kOurs) co_return Result<>();
        result =
            co_await follow_background(where.switch_id, Target::the_switch(), fmapi::Opcode::kBindVppb, ref);
    }
    // Whatever it answered: what counts is what is bound now.
    const Result<> looked = co_await look_at_vcs(where);
    if (!looked) co_return looked;
    const VppbView now_bound = switch_view(ref).vppb;
    if (now_bound == VppbView::kOurs || now_bound == VppbView::kBusy) co_return Result<>();
    if (result)
        result = fail(ErrorCode::kInternal,
                      fmt::format("switch {} reports the bind of vPPB {} of VCS {} as done, and "
                                  "shows that it is not bound",
                                  where.switch_id.value, where.vppb, where.vcs));
    co_return result;
}

Async<Result<>> Core::unbind(PartRef ref) {
    const VppbAddress where = ref.part().where;
    fmapi::UnbindVppbRequest request;
    request.vcs = where.vcs;
    request.vppb = where.vppb;
    // The agent has let go, so that the host only has to be told; when forced it is not asked.
    request.option =
        ref.part().forced ? fmapi::UnbindOption::kSurpriseHotRemove : fmapi::UnbindOption::kManagedHotRemove;
    const Result<Completion> answer = co_await switches_.at(where.switch_id)->client->unbind(request);
    Result<> result;
    if (!answer) {
        result = std::unexpected(answer.error());
    } else if (*answer == Completion::kInBackground) {
        const Result<> over = co_await look_at_vcs(where);
        if (!over) co_return over;
        const VppbView seen = switch_view(ref).vppb;
        if (seen != VppbView::kOurs && seen != VppbView::kBusy) co_return Result<>();
        result = co_await follow_background(where.switch_id, Target::the_switch(), fmapi::Opcode::kUnbindVppb,
                                            ref);
    }
    const Result<> looked = co_await look_at_vcs(where);
    if (!looked) co_return looked;
    const VppbView now_bound = switch_view(ref).vppb;
    if (now_bound != VppbView::kOurs) co_return Result<>();
    if (result)
        result = fail(ErrorCode::kInternal,
                      fmt::format("switch {} reports the unbind of vPPB {} of VCS {} as done, "
                                  "and shows that it is still bound",
                                  where.switch_id.value, where.vppb, where.vcs));
    co_return result;
}

Async<Result<>> Core::sanitize(SwitchId switch_id, Target target, std::optional<PartRef> ref) {
    const Result<Completion> answer = co_await switches_.at(switch_id)->client->sanitize(target);
    if (!answer) co_return std::unexpected(answer.error());
    if (*answer == Completion::kDone) co_return Result<>();
    co_return co_await follow_background(switch_id, target, fmapi::Opcode::kSanitize, std::move(ref));
}

// One that has not been seen yet is known by its name.
bool Core::is_dynamic(const DeviceId& id) const {
    const Device* device = inventory_.device(id);
    if (device != nullptr) return device->kind == DeviceKind::kDcd;
    return id.value.starts_with(fmt::format("{}-", to_string(DeviceKind::kDcd)));
}

// Leaves nothing of the LD's content to whoever gets its memory next. A dynamic capacity device erases by
// itself what is taken back, before it offers it again.
Async<Result<>> Core::erase(LdAddress memory, SwitchId switch_id, std::uint8_t port,
                            std::optional<PartRef> ref) {
    if (!is_dynamic(memory.device)) co_return co_await sanitize(switch_id, target_of(memory, port), ref);
    SwitchState& state = *switches_.at(switch_id);
    const AsyncMutex::Lock turn = co_await state.operation.lock();
    const DcHost host{port, memory.ld.value};
    const Result<> withdrawn = co_await withdraw_capacity(*state.client, host, kWithdrawTime);
    if (withdrawn) inventory_.resize(memory, {}, {});
    co_return withdrawn;
}

// Has a host of a dynamic capacity device be offered so much, and nothing else; answers the serial number of
// its LD. kExhausted when the device has not so much: then it is offered nothing.
Async<Result<SerialNumber>> Core::set_capacity(PartRef ref, Bytes size) {
    const Part part = ref.part();
    FmApiClient& client = *switches_.at(part.where.switch_id)->client;
    const DcHost host{part.port, part.memory.ld.value};
    const Result<> withdrawn = co_await withdraw_capacity(client, host, kWithdrawTime);
    if (!withdrawn) co_return std::unexpected(withdrawn.error());
    inventory_.resize(part.memory, {}, {});
    if (size.value == 0) co_return SerialNumber{};
    const PartId id{ref.entry->c.id, part.number};
    const Result<> offered = co_await offer_capacity(client, host, size, id);
    if (!offered) {
        const Result<> undone = co_await withdraw_capacity(client, host, kWithdrawTime);
        if (!undone) doubt(part.where.switch_id);
        co_return std::unexpected(offered.error());
    }
    const Result<fmapi::IdentifyResponse> identity =
        co_await client.identify(target_of(part.memory, part.port));
    if (!identity) co_return std::unexpected(identity.error());
    inventory_.resize(part.memory, size, SerialNumber{identity->serial});
    co_return SerialNumber{identity->serial};
}

// Makes the LDs have these sizes (in one command, so that there is no state in between), answers the serial
// number of the part's own LD. What has the size already is left alone. kExhausted when the device refuses
// for want of room, or does something else than it was asked for.
Async<Result<SerialNumber>> Core::set_sizes(PartRef ref, std::vector<LdSize> sizes) {
    const Part part = ref.part();
    if (is_dynamic(part.memory.device)) co_return co_await set_capacity(ref, sizes.front().size);
    FmApiClient& client = *switches_.at(part.where.switch_id)->client;
    const Result<LdSizes> before = co_await read_ld_sizes(client, part.port);
    if (!before) co_return std::unexpected(before.error());
    std::vector<Bytes> wanted = before->sizes;
    std::size_t first = wanted.size();
    std::size_t last = 0;
    for (const LdSize& one : sizes) {
        const std::size_t index = one.ld.value;
        if (index >= wanted.size())
            co_return fail(ErrorCode::kInvalidArgument,
                           fmt::format("device {} has no LD {} any more", part.memory.device.value, index));
        if (wanted[index] == one.size) continue;
        wanted[index] = one.size;
        first = std::min(first, index);
        last = std::max(last, index);
    }
    if (first <= last && first < wanted.size()) {
        std::vector<fmapi::LdAllocation> allocations;
        for (std::size_t i = first; i <= last; ++i)
            allocations.push_back({wanted[i] / before->granularity, 0});
        const Result<std::vector<fmapi::LdAllocation>> got = co_await client.set_ld_allocations(
            part.port, static_cast<std::uint8_t>(first), std::move(allocations));
        if (!got) co_return std::unexpected(got.error());
    }
    const Result<LdSizes> after = co_await read_ld_sizes(client, part.port);
    if (!after) co_return std::unexpected(after.error());
    std::optional<Error> other;
    for (const LdSize& one : sizes) {
        const Bytes has = one.ld.value < after->sizes.size() ? after->sizes[one.ld.value] : Bytes{};
        if (has == one.size || other) continue;
        other = Error{ErrorCode::kExhausted,
                      fmt::format("device {} allocated {} to LD {} instead of {}", part.memory.device.value,
                                  format_bytes(has), one.ld.value, format_bytes(one.size))};
    }
    if (other) {
        // What it did is what there is now.
        for (const LdSize& one : sizes)
            if (one.ld.value < after->sizes.size())
                inventory_.resize({part.memory.device, one.ld}, after->sizes[one.ld.value], SerialNumber{});
        doubt(part.where.switch_id);
        co_return std::unexpected(*std::move(other));
    }
    SerialNumber serial;
    const auto own = std::ranges::find(sizes, part.memory.ld, &LdSize::ld);
    if (own != sizes.end() && own->size.value != 0) {
        const Result<fmapi::IdentifyResponse> identity =
            co_await client.identify(target_of(part.memory, part.port));
        if (!identity) co_return std::unexpected(identity.error());
        serial = SerialNumber{identity->serial};
    }
    for (const LdSize& one : sizes)
        inventory_.resize({part.memory.device, one.ld}, one.size,
                          one.ld == part.memory.ld ? serial : SerialNumber{});
    co_return serial;
}

}  // namespace memtide::fm
