#include "tests/fabric-manager/engine/fake_switch.h"

#include <algorithm>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "cxl-emul/switch/allocation.h"

namespace memtide::fm {

namespace {

constexpr std::uint64_t kUnit = 256ull << 20;

bool is_bound(const fmapi::Vppb& vppb) {
    return vppb.binding == fmapi::VppbBinding::kBoundLd || vppb.binding == fmapi::VppbBinding::kBoundPort;
}
Error refused(std::string why) {
    return {ErrorCode::kInvalidArgument, "Invalid Input (0002h): " + std::move(why)};
}

}  // namespace

// --- Set-up ---

void FakeSwitch::add_hosts(std::size_t vppbs) {
    for (std::uint8_t id : {std::uint8_t{0}, std::uint8_t{1}}) {
        FakePort port;
        port.id = id;
        port.upstream = true;
        ports.push_back(port);
        vcss.push_back({id, id, std::vector<fmapi::Vppb>(vppbs)});
    }
}

void FakeSwitch::add_mld(std::uint8_t id, std::vector<std::uint64_t> units, std::uint64_t spare) {
    FakePort port;
    port.id = id;
    port.type = fmapi::ConnectedDeviceType::kType3Mld;
    port.serial = 0x4d54'0000'0000'0000ull + (std::uint64_t{id} << 32);
    port.size = spare * kUnit;
    for (std::size_t i = 0; i < units.size(); ++i) {
        port.lds.push_back({port.serial + 1 + i, units[i] * kUnit, true, false});
        port.lds.back().offset = port.size - spare * kUnit;
        port.size += units[i] * kUnit;
    }
    ports.push_back(std::move(port));
}

void FakeSwitch::place_lds(std::uint8_t id, const std::vector<std::uint64_t>& offsets) {
    for (std::size_t i = 0; i < offsets.size(); ++i) port(id).lds.at(i).offset = offsets[i] * kUnit;
}

void FakeSwitch::add_sld(std::uint8_t id, std::uint64_t units) {
    FakePort port;
    port.id = id;
    port.type = fmapi::ConnectedDeviceType::kType3Sld;
    port.serial = 0x4d54'0000'0000'0000ull + (std::uint64_t{id} << 32);
    port.size = units * kUnit;
    port.lds.push_back({port.serial, port.size, true, false});
    ports.push_back(std::move(port));
}

void FakeSwitch::remove_device(std::uint8_t id) {
    FakePort& gone = port(id);
    gone.type = fmapi::ConnectedDeviceType::kNone;
    gone.lds.clear();
    for (FakeVcs& vcs : vcss)
        for (fmapi::Vppb& one : vcs.vppbs)
            if (is_bound(one) && one.port == id) one = fmapi::Vppb{};
}

void FakeSwitch::add_port(std::uint8_t id) {
    FakePort port;
    port.id = id;
    ports.push_back(port);
}

void FakeSwitch::move_device(std::uint8_t from, FakeSwitch& there, std::uint8_t to) {
    FakePort moved = port(from);
    remove_device(from);
    for (FakeLd& ld : moved.lds) ld.online = false;
    moved.id = to;
    there.port(to) = std::move(moved);
}

FakePort& FakeSwitch::port(std::uint8_t id) { return *std::ranges::find(ports, id, &FakePort::id); }

FakeLd* FakeSwitch::ld_at(std::uint8_t id, std::uint16_t ld) {
    const auto found = std::ranges::find(ports, id, &FakePort::id);
    if (found == ports.end() || found->lds.empty()) return nullptr;
    if (found->type == fmapi::ConnectedDeviceType::kType3Sld)
        return ld == 0xffff ? &found->lds.front() : nullptr;
    return ld < found->lds.size() ? &found->lds[ld] : nullptr;
}

FakeLd* FakeSwitch::visible(std::uint8_t vcs, std::uint64_t serial) {
    for (const fmapi::Vppb& one : vcss.at(vcs).vppbs) {
        if (!is_bound(one)) continue;
        FakeLd* ld = ld_at(one.port, one.binding == fmapi::VppbBinding::kBoundPort ? 0xffff : one.ld);
        if (ld != nullptr && ld->serial == serial) return ld;
    }
    return nullptr;
}

// --- Coming and going of commands ---

boost::asio::awaitable<Result<>> FakeSwitch::arrive(std::string_view command) {
    co_await boost::asio::post(executor_, boost::asio::use_awaitable);
    if (down) co_return fail(ErrorCode::kUnavailable, "cannot connect to the fake switch");
    tick();
    if (fault)
        if (std::optional<Error> error = fault(command, When::kBefore)) co_return std::unexpected(*error);
    co_return Result<>();
}

// Operations go on by themselves: each command that arrives is a moment later than the one before.
void FakeSwitch::tick() {
    bool moved = false;
    const auto advance = [&](Operation& operation) {
        if (operation.done) return;
        moved = true;
        if (operation.polls_left-- <= 0) finish(operation);
    };
    advance(switch_operation_);
    for (auto& [target, operation] : ld_operations_) advance(operation);
    if (moved) save();  // before whoever asks can see it
}

Result<> FakeSwitch::leave(std::string_view command) {
    save();
    if (fault)
        if (std::optional<Error> error = fault(command, When::kAfter)) return std::unexpected(*error);
    return {};
}

Completion FakeSwitch::begin(Operation& slot, Operation operation) {
    const auto code = ends_with.find(operation.command);
    if (code != ends_with.end()) operation.code = code->second;
    operation.polls_left = background_polls;
    operation.done = false;
    slot = std::move(operation);
    ++calls[slot.command];
    return Completion::kInBackground;
}

void FakeSwitch::finish(Operation& operation) {
    operation.done = true;
    const bool good = operation.code == fmapi::ReturnCode::kSuccess;
    if (operation.command == "sanitize") {
        if (FakeLd* ld = ld_at(operation.port, operation.ld); ld != nullptr && good) {
            ld->dirty = false;
            ld->stale = ld->stale && sanitize_lies;
        }
        return;
    }
    fmapi::Vppb& one = vppb(operation.vcs, operation.vppb);
    const bool becomes_bound = (operation.command == "bind") == good;
    FakeLd* ld = ld_at(operation.port, operation.ld);
    if (!becomes_bound) {
        one = fmapi::Vppb{};
        if (ld != nullptr) {
            // A dynamic capacity device erases what comes back to it.
            ld->stale = !port(operation.port).dynamic && (ld->stale || ld->online || ld->used);
            ld->online = false;
            ld->used = false;
            detach_dcd(*ld);
        }
        return;
    }
    one.binding = operation.ld == 0xffff ? fmapi::VppbBinding::kBoundPort : fmapi::VppbBinding::kBoundLd;
    one.port = operation.port;
    one.ld = static_cast<std::uint8_t>(operation.ld);
    if (ld != nullptr) ld->dirty = !port(operation.port).dynamic;  // the host can write from now on
}

Call<fmapi::BackgroundOperationStatusResponse> FakeSwitch::background_status(Target target) {
    const Result<> here = co_await arrive("status");
    if (!here) co_return std::unexpected(here.error());
    Operation& operation =
        target.port
            ? ld_operations_[{*target.port, target.ld ? std::uint16_t{*target.ld} : std::uint16_t{0xffff}}]
            : switch_operation_;
    fmapi::BackgroundOperationStatusResponse answer;
    answer.status =
        fmapi::BackgroundOperationStatusResponse::make_status(!operation.done, operation.done ? 100 : 50);
    answer.opcode = operation.opcode;
    answer.return_code = operation.code;
    const Result<> gone = leave("status");
    if (!gone) co_return std::unexpected(gone.error());
    co_return answer;
}

// --- Looking ---

Call<fmapi::IdentifyResponse> FakeSwitch::identify(Target target) {
    const Result<> here = co_await arrive("identify");
    if (!here) co_return std::unexpected(here.error());
    fmapi::IdentifyResponse answer;
    if (target.port && target.ld) {
        const FakePort& one = port(*target.port);
        const FakeLd* ld = ld_at(*target.port, *target.ld);
        const bool elsewhere = one.heads > 1 && one.ld_map.at(*target.ld) != one.head;
        if (ld == nullptr || (ld->size == 0 && !one.dynamic) || elsewhere)
            co_return std::unexpected(refused("no such LD"));
        answer.serial = ld->serial;
    } else if (target.port) {
        answer.serial = port(*target.port).serial;
    }
    co_return answer;
}

Call<fmapi::GetMultiHeadedInfoResponse> FakeSwitch::multi_headed_info(std::uint8_t id) {
    const Result<> here = co_await arrive("multi_headed_info");
    if (!here) co_return std::unexpected(here.error());
    const FakePort& one = port(id);
    if (one.heads == 1) co_return fail(ErrorCode::kInvalidArgument, "Unsupported (0003h)");
    fmapi::GetMultiHeadedInfoResponse answer;
    answer.total_lds = static_cast<std::uint8_t>(one.ld_map.size());
    answer.heads = one.heads;
    answer.ld_map = one.ld_map;
    co_return answer;
}

Call<fmapi::GetHeadInfoResponse> FakeSwitch::head_info(std::uint8_t id, std::uint8_t) {
    const Result<> here = co_await arrive("head_info");
    if (!here) co_return std::unexpected(here.error());
    fmapi::GetHeadInfoResponse answer;
    for (const std::uint8_t number : port(id).head_numbers)
        answer.heads.push_back(fmapi::HeadInfo{.port_number = number});
    co_return answer;
}

Call<fmapi::IdentifySwitchDeviceResponse> FakeSwitch::identify_switch() {
    const Result<> here = co_await arrive("identify_switch");
    if (!here) co_return std::unexpected(here.error());
    fmapi::IdentifySwitchDeviceResponse answer;
    answer.physical_ports = static_cast<std::uint8_t>(ports.size());
    answer.vcss = static_cast<std::uint8_t>(vcss.size());
    for (const FakePort& one : ports) answer.active_ports.set(one.id);
    for (const FakeVcs& one : vcss) answer.active_vcss.set(one.id);
    co_return answer;
}

Call<std::vector<fmapi::PhysicalPort>> FakeSwitch::physical_ports(std::vector<std::uint8_t> ids) {
    const Result<> here = co_await arrive("physical_ports");
    if (!here) co_return std::unexpected(here.error());
    std::vector<fmapi::PhysicalPort> answer;
    for (const std::uint8_t id : ids) {
        const FakePort& one = port(id);
        fmapi::PhysicalPort state;
        state.port = id;
        state.config_state =
            one.upstream ? fmapi::PortConfigState::kUpstream : fmapi::PortConfigState::kDownstream;
        state.device_type = one.type;
        state.negotiated_link_width = 8;
        state.supported_lds = static_cast<std::uint8_t>(one.lds.size());
        answer.push_back(state);
    }
    co_return answer;
}

Call<std::vector<fmapi::VirtualSwitch>> FakeSwitch::virtual_switches(std::vector<std::uint8_t> ids) {
    const Result<> here = co_await arrive("virtual_switches");
    if (!here) co_return std::unexpected(here.error());
    std::vector<fmapi::VirtualSwitch> answer;
    for (const std::uint8_t id : ids) {
        const FakeVcs& one = vcss.at(id);
        fmapi::VirtualSwitch state;
        state.vcs = id;
        state.state = fmapi::VcsState::kEnabled;
        state.upstream_port = one.upstream_port;
        state.total_vppbs = static_cast<std::uint8_t>(one.vppbs.size());
        state.vppbs = one.vppbs;
        answer.push_back(std::move(state));
    }
    co_return answer;
}

Call<fmapi::GetLdInfoResponse> FakeSwitch::ld_info(std::uint8_t id) {
    const Result<> here = co_await arrive("ld_info");
    if (!here) co_return std::unexpected(here.error());
    fmapi::GetLdInfoResponse answer;
    answer.memory_size = port(id).size;
    answer.ld_count = static_cast<std::uint16_t>(port(id).lds.size());
    co_return answer;
}

Call<fmapi::IdentifyMemoryDeviceResponse> FakeSwitch::identify_memory_device(Target target) {
    const Result<> here = co_await arrive("identify_memory_device");
    if (!here) co_return std::unexpected(here.error());
    const FakePort& one = port(target.port.value());
    fmapi::IdentifyMemoryDeviceResponse answer;
    answer.total_capacity = (target.ld ? one.lds.at(*target.ld).size : one.size) / kUnit;
    co_return answer;
}

Call<fmapi::GetHealthInfoResponse> FakeSwitch::health_info(Target target) {
    const Result<> here = co_await arrive("health_info");
    if (!here) co_return std::unexpected(here.error());
    ++calls["health_info"];
    const FakePort& one = port(target.port.value());
    if (!target.ld && !one.fm_ld_knows_health)
        co_return fail(ErrorCode::kInvalidArgument, "Get Health Info: Unsupported (0003h)");
    co_return one.health;
}

Call<fmapi::GetLdAllocationsResponse> FakeSwitch::ld_allocations(std::uint8_t id) {
    const Result<> here = co_await arrive("ld_allocations");
    if (!here) co_return std::unexpected(here.error());
    fmapi::GetLdAllocationsResponse answer;
    const FakePort& one = port(id);
    answer.total_lds = static_cast<std::uint8_t>(one.lds.size());
    answer.granularity = one.granularity;
    for (const FakeLd& ld : one.lds)
        answer.allocations.push_back({ld.size / fmapi::bytes_of(one.granularity).value, 0});
    co_return answer;
}

Call<void> FakeSwitch::abort_background(Target) {
    const Result<> here = co_await arrive("abort");
    if (!here) co_return std::unexpected(here.error());
    if (!switch_operation_.done) {
        switch_operation_.code = fmapi::ReturnCode::kAborted;
        finish(switch_operation_);
    }
    ++calls["abort"];
    co_return Result<>();
}

Call<void> FakeSwitch::port_control(std::uint8_t, fmapi::PortOperation) { co_return Result<>(); }
Call<std::uint32_t> FakeSwitch::read_port_config(std::uint8_t, std::uint16_t) {
    co_return Result<std::uint32_t>(0);
}

// --- Doing ---

std::optional<std::string> FakeSwitch::bind_fault(const fmapi::BindVppbRequest& request) {
    const FakeLd* ld = ld_at(request.port, request.ld);
    if (ld == nullptr || (ld->size == 0 && !port(request.port).dynamic)) return "no such LD";
    if (vppb(request.vcs, request.vppb).binding != fmapi::VppbBinding::kUnbound)
        return "the vPPB is not unbound";
    for (std::uint8_t vcs = 0; vcs < vcss.size(); ++vcs)
        if (visible(vcs, ld->serial) != nullptr) {
            violations.push_back(fmt::format("asked to bind {:#x} a second time", ld->serial));
            return "the LD is bound";
        }
    if (ld->dirty)
        violations.push_back(fmt::format("{:#x} was bound without having been erased", ld->serial));
    return std::nullopt;
}

Call<Completion> FakeSwitch::bind(fmapi::BindVppbRequest request, std::optional<std::uint64_t> connection) {
    if (connection && *connection != connections_)
        co_return fail(ErrorCode::kUnavailable, "not sent: the switch was connected to anew");
    const Result<> here = co_await arrive("bind");
    if (!here) co_return std::unexpected(here.error());
    if (!switch_operation_.done) co_return fail(ErrorCode::kConflict, "Busy (0006h)");
    if (std::optional<std::string> wrong = bind_fault(request)) co_return std::unexpected(refused(*wrong));
    Operation operation;
    operation.command = "bind";
    operation.opcode = fmapi::Opcode::kBindVppb;
    operation.vcs = request.vcs;
    operation.vppb = request.vppb;
    operation.port = request.port;
    operation.ld = request.ld;
    vppb(request.vcs, request.vppb).binding = fmapi::VppbBinding::kInProgress;
    const Completion completion = begin(switch_operation_, std::move(operation));
    const Result<> gone = leave("bind");
    if (!gone) co_return std::unexpected(gone.error());
    co_return completion;
}

Call<Completion> FakeSwitch::unbind(fmapi::UnbindVppbRequest request) {
    const Result<> here = co_await arrive("unbind");
    if (!here) co_return std::unexpected(here.error());
    if (!switch_operation_.done) co_return fail(ErrorCode::kConflict, "Busy (0006h)");
    fmapi::Vppb& one = vppb(request.vcs, request.vppb);
    if (!is_bound(one)) co_return std::unexpected(refused("the vPPB is not bound"));
    Operation operation;
    operation.command = "unbind";
    operation.opcode = fmapi::Opcode::kUnbindVppb;
    operation.vcs = request.vcs;
    operation.vppb = request.vppb;
    operation.port = one.port;
    operation.ld =
        one.binding == fmapi::VppbBinding::kBoundPort ? std::uint16_t{0xffff} : std::uint16_t{one.ld};
    last_unbind_option = static_cast<std::uint8_t>(request.option);
    if (const FakeLd* ld = ld_at(operation.port, operation.ld);
        ld != nullptr && ld->online && request.option != fmapi::UnbindOption::kSurpriseHotRemove)
        violations.push_back(fmt::format("{:#x} was unbound under a host that has it online", ld->serial));
    one.binding = fmapi::VppbBinding::kInProgress;
    const Completion completion = begin(switch_operation_, std::move(operation));
    const Result<> gone = leave("unbind");
    if (!gone) co_return std::unexpected(gone.error());
    co_return completion;
}

Call<std::vector<fmapi::LdAllocation>> FakeSwitch::set_ld_allocations(
    std::uint8_t id, std::uint8_t first, std::vector<fmapi::LdAllocation> allocations) {
    const Result<> here = co_await arrive("set_ld_allocations");
    if (!here) co_return std::unexpected(here.error());
    FakePort& device = port(id);
    const std::uint64_t unit = fmapi::bytes_of(device.granularity).value;
    if (first + allocations.size() > device.lds.size()) co_return std::unexpected(refused("no such LD"));
    std::vector<emul::Slice> slices;
    std::vector<Bytes> sizes;
    for (const FakeLd& ld : device.lds) slices.push_back({{ld.size == 0 ? 0 : ld.offset}, {ld.size}});
    for (const fmapi::LdAllocation& one : allocations)
        sizes.push_back({std::min(one.range1 * unit, device.largest_ld.value_or(~std::uint64_t{0}))});
    const auto after = emul::allocate(slices, {device.size}, first, sizes);
    if (!after) co_return fail(ErrorCode::kExhausted, "Resources Exhausted (001dh)");
    for (std::size_t i = 0; i < device.lds.size(); ++i) {
        FakeLd& ld = device.lds[i];
        const emul::Slice& slice = (*after)[i];
        if (slice == slices[i]) continue;
        for (std::uint8_t vcs = 0; vcs < vcss.size(); ++vcs)
            if (visible(vcs, ld.serial) != nullptr) violations.push_back("a bound LD was resized");
        ld.size = slice.size.value;
        ld.offset = slice.offset.value;
    }
    for (FakeLd& ld : device.lds)
        if (!ld.online) ld.dirty = true;
    ++calls["set_ld_allocations"];
    const Result<> gone = leave("set_ld_allocations");
    if (!gone) co_return std::unexpected(gone.error());
    co_return allocations;
}

Call<Completion> FakeSwitch::sanitize(Target target) {
    const Result<> here = co_await arrive("sanitize");
    if (!here) co_return std::unexpected(here.error());
    const std::uint16_t ld_id = target.ld ? std::uint16_t{*target.ld} : std::uint16_t{0xffff};
    const FakeLd* ld = ld_at(target.port.value_or(0xff), ld_id);
    if (ld == nullptr) co_return std::unexpected(refused("no such LD"));
    Operation& slot = ld_operations_[{*target.port, ld_id}];
    if (!slot.done) co_return fail(ErrorCode::kConflict, "Busy (0006h)");
    for (std::uint8_t vcs = 0; vcs < vcss.size(); ++vcs)
        if (visible(vcs, ld->serial) != nullptr) violations.push_back("a bound LD was erased under its host");
    Operation operation;
    operation.command = "sanitize";
    operation.opcode = fmapi::Opcode::kSanitize;
    operation.port = *target.port;
    operation.ld = ld_id;
    const Completion completion = begin(slot, std::move(operation));
    const Result<> gone = leave("sanitize");
    if (!gone) co_return std::unexpected(gone.error());
    co_return completion;
}

}  // namespace memtide::fm
