#include "fabric-manager/engine/read_switch.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "fabric-manager/engine/dynamic_capacity.h"
#include "fabric-manager/engine/read_heads.h"

namespace memtide::fm {

namespace {

using boost::asio::awaitable;

std::vector<std::uint8_t> ids_of(const fmapi::IdBitmap& bitmap) {
    std::vector<std::uint8_t> ids;
    for (unsigned id = 0; id < 256; ++id)
        if (bitmap.test(static_cast<std::uint8_t>(id))) ids.push_back(static_cast<std::uint8_t>(id));
    return ids;
}

BindingStatus status_of(fmapi::VppbBinding binding) {
    switch (binding) {
        case fmapi::VppbBinding::kUnbound:
            return BindingStatus::kUnbound;
        case fmapi::VppbBinding::kInProgress:
            return BindingStatus::kInProgress;
        case fmapi::VppbBinding::kBoundPort:
            return BindingStatus::kBoundPort;
        case fmapi::VppbBinding::kBoundLd:
            return BindingStatus::kBoundLd;
        case fmapi::VppbBinding::kBoundPid:
            break;
    }
    return BindingStatus::kInProgress;  // to something that is not ours, or unknown: hands off
}

Vppb vppb_of(std::size_t index, const fmapi::Vppb& seen) {
    Vppb vppb;
    vppb.id = static_cast<std::uint8_t>(index);
    vppb.status = status_of(seen.binding);
    if (vppb.status == BindingStatus::kBoundPort || vppb.status == BindingStatus::kBoundLd)
        vppb.port = seen.port;
    if (vppb.status == BindingStatus::kBoundLd) vppb.ld = LdId{seen.ld};
    return vppb;
}

std::vector<Vppb> vppbs_of(const fmapi::VirtualSwitch& seen) {
    std::vector<Vppb> vppbs;
    for (std::size_t i = 0; i < seen.vppbs.size(); ++i) vppbs.push_back(vppb_of(i, seen.vppbs[i]));
    return vppbs;
}

bool is_memory(fmapi::ConnectedDeviceType type) {
    return type == fmapi::ConnectedDeviceType::kType3Sld || type == fmapi::ConnectedDeviceType::kType3Mld;
}

Port port_of(const fmapi::PhysicalPort& seen) {
    Port port;
    port.id = seen.port;
    if (seen.config_state == fmapi::PortConfigState::kUpstream) port.role = PortRole::kUpstream;
    if (seen.config_state == fmapi::PortConfigState::kDownstream ||
        seen.config_state == fmapi::PortConfigState::kBindInProgress ||
        seen.config_state == fmapi::PortConfigState::kUnbindInProgress)
        port.role = PortRole::kDownstream;
    port.link_up = seen.negotiated_link_width != 0;
    port.link_width = seen.negotiated_link_width;
    port.supported_lds = seen.supported_lds;
    return port;
}

// What is known already of an LD of this device; 0 when that is nothing.
SerialNumber known_ld_serial(const DeviceReading& device, std::size_t ld, const Device* known) {
    const bool is_known = known != nullptr && known->serial == device.serial && ld < known->lds.size();
    return is_known ? known->lds[ld].serial : SerialNumber{};
}

awaitable<Result<SerialNumber>> read_ld_serial(FmApiClient& client, std::uint8_t port, std::size_t ld) {
    co_return co_await read_serial(client, Target::logical_device(port, static_cast<std::uint8_t>(ld)));
}

// Of a dynamic capacity device every LD can be asked, whether anything was added to it or not.
awaitable<Result<>> read_ld_serials(FmApiClient& client, DeviceReading& device, const Device* known) {
    for (std::size_t i = 0; i < device.lds.size(); ++i) {
        LdReading& ld = device.lds[i];
        ld.id = LdId{static_cast<std::uint16_t>(i)};
        ld.serial = known_ld_serial(device, i, known);
        if (ld.serial.value != 0) continue;
        const Result<SerialNumber> serial = co_await read_ld_serial(client, device.port, i);
        if (!serial) co_return std::unexpected(serial.error());
        ld.serial = *serial;
    }
    co_return Result<>();
}

awaitable<Result<>> read_mld(FmApiClient& client, DeviceReading& device, const Device* known,
                             bool is_multi_headed) {
    const Result<fmapi::GetLdInfoResponse> info = co_await client.ld_info(device.port);
    if (!info) co_return std::unexpected(info.error());
    device.size = Bytes{info->memory_size};
    if (info->memory_size == 0 && !is_multi_headed) {
        device.lds.resize(info->ld_count);
        const Result<> dynamic = co_await read_dynamic_capacity(client, device);
        if (dynamic) co_return co_await read_ld_serials(client, device, known);
        if (dynamic.error().code != ErrorCode::kInvalidArgument) co_return dynamic;
        co_return fail(ErrorCode::kProtocol, "it has no memory");
    }
    const Result<LdSizes> sizes = co_await read_ld_sizes(client, device.port);
    if (!sizes) co_return std::unexpected(sizes.error());
    device.granularity = sizes->granularity;
    Bytes sum;
    for (std::size_t i = 0; i < sizes->sizes.size(); ++i) {
        LdReading ld{LdId{static_cast<std::uint16_t>(i)}, SerialNumber{}, sizes->sizes[i]};
        // Compared before it is added: four of the largest sizes are none at all in 64 bits.
        if (ld.size > device.size - sum)
            co_return fail(ErrorCode::kProtocol, fmt::format("its LDs add up to more than the {} it has",
                                                             format_bytes(device.size)));
        sum += ld.size;
        ld.serial = known_ld_serial(device, i, known);
        // Of several heads not every LD answers here: those that do are asked when the head is looked for.
        if (ld.size.value != 0 && ld.serial.value == 0 && !is_multi_headed) {
            const Result<SerialNumber> serial = co_await read_ld_serial(client, device.port, i);
            if (!serial) co_return std::unexpected(serial.error());
            ld.serial = *serial;
        }
        device.lds.push_back(ld);
    }
    co_return Result<>();
}

awaitable<Result<DeviceReading>> read_device(FmApiClient& client, const fmapi::PhysicalPort& port,
                                             const Device* known, int& unanswered) {
    DeviceReading device;
    device.port = port.port;
    device.kind =
        port.device_type == fmapi::ConnectedDeviceType::kType3Mld ? DeviceKind::kMld : DeviceKind::kSld;
    const Result<SerialNumber> serial = co_await read_serial(client, Target::device(port.port));
    if (!serial) co_return std::unexpected(serial.error());
    device.serial = *serial;
    if (known != nullptr && known->serial != device.serial) known = nullptr;
    const Result<HeadsAnswer> heads = co_await read_heads(client, device.port, known, unanswered);
    if (!heads) co_return std::unexpected(heads.error());
    if (device.kind == DeviceKind::kMld) {
        const Result<> ok = co_await read_mld(client, device, known, heads->has_value());
        if (!ok) co_return std::unexpected(ok.error());
    } else if (!*heads) {
        const Result<fmapi::IdentifyMemoryDeviceResponse> info =
            co_await client.identify_memory_device(Target::device(port.port));
        if (!info) co_return std::unexpected(info.error());
        if (info->total_capacity > (std::uint64_t{1} << 34))
            co_return fail(ErrorCode::kProtocol, "it says that it has more memory than can be");
        device.size = info->total();
        device.granularity = kCxlGranule;
        device.lds.push_back({kWholeDevice, device.serial, device.size});
    }
    if (*heads) {
        device.granularity = device.kind == DeviceKind::kMld ? device.granularity : kCxlGranule;
        const Result<> ok = co_await find_head(client, device, **heads, known);
        if (!ok) co_return std::unexpected(ok.error());
    }
    if (device.kind == DeviceKind::kMld && device.size.value == 0)
        co_return fail(ErrorCode::kProtocol, "it has no memory");
    if (device.size.value == 0 || device.size.value > (std::uint64_t{1} << 62) ||
        !device.size.is_multiple_of(kCxlGranule))
        co_return fail(ErrorCode::kProtocol, fmt::format("it says that it has {} bytes", device.size.value));
    co_return device;
}

awaitable<Result<SwitchReading>> read_fabric(FmApiClient& client, std::vector<fmapi::PhysicalPort>& ports) {
    SwitchReading reading;
    const Result<fmapi::IdentifySwitchDeviceResponse> identity = co_await client.identify_switch();
    if (!identity) co_return std::unexpected(identity.error());
    std::vector<std::uint8_t> port_ids = ids_of(identity->active_ports);
    Result<std::vector<fmapi::PhysicalPort>> states = co_await client.physical_ports(std::move(port_ids));
    if (!states) co_return std::unexpected(states.error());
    ports = *std::move(states);
    for (const fmapi::PhysicalPort& port : ports) reading.ports.push_back(port_of(port));
    std::vector<std::uint8_t> vcs_ids = ids_of(identity->active_vcss);
    const Result<std::vector<fmapi::VirtualSwitch>> vcss =
        co_await client.virtual_switches(std::move(vcs_ids));
    if (!vcss) co_return std::unexpected(vcss.error());
    for (const fmapi::VirtualSwitch& seen : *vcss) {
        if (seen.state == fmapi::VcsState::kInvalidVcs) continue;
        Vcs vcs;
        vcs.id = seen.vcs;
        vcs.enabled = seen.state == fmapi::VcsState::kEnabled;
        vcs.upstream_port = seen.upstream_port;
        vcs.vppbs = vppbs_of(seen);
        reading.vcss.push_back(std::move(vcs));
    }
    co_return reading;
}

}  // namespace

awaitable<Result<LdSizes>> read_ld_sizes(FmApiClient& client, std::uint8_t port) {
    const Result<fmapi::GetLdAllocationsResponse> answer = co_await client.ld_allocations(port);
    if (!answer) co_return std::unexpected(answer.error());
    LdSizes result;
    result.granularity = fmapi::bytes_of(answer->granularity);
    if (result.granularity.value == 0)
        co_return fail(ErrorCode::kProtocol, "it names a granularity that does not exist");
    const std::uint64_t limit = (std::uint64_t{1} << 62) / result.granularity.value;
    for (const fmapi::LdAllocation& one : answer->allocations) {
        if (one.range1 > limit || one.range2 > limit - one.range1)
            co_return fail(ErrorCode::kProtocol, "it says that an LD has more memory than can be");
        result.sizes.push_back(result.granularity * (one.range1 + one.range2));
    }
    co_return result;
}

awaitable<Result<std::vector<Vppb>>> read_vppbs(FmApiClient& client, std::uint8_t vcs) {
    std::vector<std::uint8_t> ids(1, vcs);
    const Result<std::vector<fmapi::VirtualSwitch>> answer = co_await client.virtual_switches(std::move(ids));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->size() != 1 || answer->front().vcs != vcs)
        co_return fail(ErrorCode::kProtocol, fmt::format("asked for VCS {}, got another", vcs));
    co_return vppbs_of(answer->front());
}

awaitable<Result<FabricReading>> read_switch(FmApiClient& client, const SwitchId& id, const Inventory& known,
                                             UnansweredHeads& unanswered) {
    FabricReading reading;
    std::vector<fmapi::PhysicalPort> ports;
    Result<SwitchReading> fabric = co_await read_fabric(client, ports);
    if (!fabric) co_return std::unexpected(fabric.error());
    reading.fabric = *std::move(fabric);
    for (const fmapi::PhysicalPort& port : ports) {
        if (port.config_state == fmapi::PortConfigState::kUpstream || !is_memory(port.device_type)) {
            unanswered.erase(port.port);
            continue;
        }
        int& times = unanswered[port.port];
        const int before = times;
        Result<DeviceReading> device =
            co_await read_device(client, port, known.device_at(id, port.port), times);
        if (device && before == 0 && times == 1) {
            reading.unreadable.push_back(
                {port.port, "it does not say whether it has several heads; it is asked once more"});
            continue;
        }
        if (device) {
            reading.devices.push_back(*std::move(device));
            continue;
        }
        if (is_of_switch(device.error())) co_return std::unexpected(device.error());
        reading.unreadable.push_back({port.port, device.error().message});
    }
    co_return reading;
}

}  // namespace memtide::fm
