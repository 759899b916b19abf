#include <algorithm>

#include "cxl-emul/switch/allocation.h"
#include "cxl-emul/switch/command_table.h"

// Devices behind the ports: the FM-owned LD of an MLD (CXL 3.1, 7.6.7.4), and the memory device that an LD or
// an SLD is (8.2.9).
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;

// As QEMU's cxl-type3, which is what a host of a rack sees.
constexpr std::uint16_t kVendor = 0x8086;
constexpr std::uint16_t kDevice = 0x0d93;

fmapi::IdentifyResponse type3_identity(SerialNumber serial) {
    return {.vendor = kVendor,
            .device = kDevice,
            .subsystem_vendor = 0,
            .subsystem = 0,
            .serial = serial.value,
            .max_message_size = kLargestMessage,
            .component_type = fmapi::ComponentType::kType3};
}

fmapi::IdentifyMemoryDeviceResponse memory_identity(Bytes size) {
    const std::uint64_t capacity = size / kCxlGranule;
    return {.firmware_revision = {'m', 'e', 'm', 't', 'i', 'd', 'e'},
            .total_capacity = capacity,
            .volatile_only_capacity = capacity};
}

// --- the FM-owned LD of an MLD ---

Outcome identify_device(const DeviceContext& context, const fmapi::NoPayload&) {
    return done(type3_identity(context.device().config.serial));
}

// All LDs of a device are as healthy as it is.
Outcome device_health(const DeviceContext& context, const fmapi::NoPayload&) {
    return done(context.device().health);
}

Outcome ld_info(const DeviceContext& context, const fmapi::NoPayload&) {
    const Device& device = context.device();
    // Dynamic capacity is not counted, as in Identify Memory Device.
    return done(fmapi::GetLdInfoResponse{
        .memory_size = device.dynamic ? 0 : device.config.size.value,
        .ld_count = static_cast<std::uint16_t>(device.lds.size()),
        .qos_telemetry = fmapi::kEgressPortCongestion | fmapi::kTemporaryThroughputReduction});
}

fmapi::LdGranularity granularity_of(const Device& device) {
    if (device.config.granularity == gibibytes(1)) return fmapi::LdGranularity::k1GiB;
    if (device.config.granularity == mebibytes(512)) return fmapi::LdGranularity::k512MiB;
    return fmapi::LdGranularity::k256MiB;
}

fmapi::LdAllocation allocation_of(const Device& device, const Ld& ld) {
    return {.range1 = ld.size / device.config.granularity, .range2 = 0};
}

Outcome get_allocations(const DeviceContext& context, const fmapi::GetLdAllocationsRequest& request) {
    const Device& device = context.device();
    if (request.first_ld >= device.lds.size()) return refuse(ReturnCode::kInvalidInput);
    fmapi::GetLdAllocationsResponse response;
    response.total_lds = static_cast<std::uint8_t>(device.lds.size());
    response.granularity = granularity_of(device);
    response.first_ld = request.first_ld;
    const std::size_t listed = std::min<std::size_t>(device.lds.size() - request.first_ld, request.limit);
    for (std::size_t i = 0; i < listed; ++i)
        response.allocations.push_back(allocation_of(device, device.lds[request.first_ld + i]));
    return done(response);
}

// Invalid Input for what can never be, for an LD that a host has or that another head has, and for a second
// range: the memory of an LD is in one piece here. Busy while an LD that would change is being erased.
// Resources Exhausted when an LD finds no contiguous gap. Refused as a whole, then nothing has changed.
Outcome set_allocations(const DeviceContext& context, const fmapi::SetLdAllocationsPayload& request) {
    Device& device = context.device();
    if (device.dynamic) return refuse(ReturnCode::kUnsupported);
    if (request.allocations.empty() || request.first_ld + request.allocations.size() > device.lds.size())
        return refuse(ReturnCode::kInvalidInput);
    std::vector<Bytes> sizes;
    for (std::size_t i = 0; i < request.allocations.size(); ++i) {
        const fmapi::LdAllocation& wanted = request.allocations[i];
        if (wanted.range2 != 0 || wanted.range1 > device.config.size / device.config.granularity)
            return refuse(ReturnCode::kInvalidInput);
        sizes.push_back(device.config.granularity * wanted.range1);
        const Ld& ld = device.lds[request.first_ld + i];
        if (ld.size == sizes.back()) continue;
        if (!device.config.is_at_head(request.first_ld + i, context.head))
            return refuse(ReturnCode::kInvalidInput);
        if (ld.taken_by) return refuse(ReturnCode::kInvalidInput);
        if (ld.background.running) return refuse(ReturnCode::kBusy);
    }
    // The response would repeat the request.
    if (!fits_response_limit(device, fmapi::encode(request).size())) return refuse(ReturnCode::kInvalidInput);

    std::vector<Slice> current;
    for (const Ld& ld : device.lds) current.push_back({ld.offset, ld.size});
    const auto slices = allocate(current, device.config.size, request.first_ld, sizes);
    if (!slices) return refuse(ReturnCode::kResourcesExhausted);
    for (std::size_t i = 0; i < slices->size(); ++i) {
        device.lds[i].offset = (*slices)[i].offset;
        device.lds[i].size = (*slices)[i].size;
    }
    return done(request);
}

// Older managers say kLdPool where CXL 3.1 has kLd. On a device with one head, which has no LD pool,
// there is no other meaning to it.
bool means_an_ld(const Device& device, fmapi::TunnelTarget target) {
    return target == fmapi::TunnelTarget::kLd ||
           (target == fmapi::TunnelTarget::kLdPool && !device.config.is_multi_headed());
}

Outcome tunnel_inside(const DeviceContext& context, const fmapi::TunnelRequest& request) {
    const Device& device = context.device();
    if (means_an_ld(device, request.target)) {
        if (request.id >= device.lds.size() || !device.config.is_at_head(request.id, context.head))
            return refuse(ReturnCode::kInvalidInput);
        return tunnel(request, [&](fmapi::MctpType type, const fmapi::Message& inner) {
            return handle_ld({context.model, context.index, request.id}, type, inner);
        });
    }
    if (request.target != fmapi::TunnelTarget::kLdPool) return refuse(ReturnCode::kInvalidInput);
    return tunnel(request, [&](fmapi::MctpType type, const fmapi::Message& inner) {
        return handle_device({context.model, context.index, context.head, true}, type, inner);
    });
}

constexpr Row<DeviceContext> kMldRows[] = {
    row<fmapi::Identify, DeviceContext, identify_device>(),
    row<fmapi::GetHealthInfo, DeviceContext, device_health>(),
    row<fmapi::TunnelManagementCommand, DeviceContext, tunnel_inside>(),
    row<fmapi::GetLdInfo, DeviceContext, ld_info>(),
    row<fmapi::GetLdAllocations, DeviceContext, get_allocations>(),
    row<fmapi::SetLdAllocations, DeviceContext, set_allocations>(),
    row<fmapi::GetQosControl, DeviceContext, qos_control>(),
    row<fmapi::SetQosControl, DeviceContext, set_qos_control>(),
    row<fmapi::GetQosStatus, DeviceContext, qos_status>(),
    row<fmapi::GetQosAllocatedBandwidth, DeviceContext, allocated_bandwidth>(),
    row<fmapi::SetQosAllocatedBandwidth, DeviceContext, set_allocated_bandwidth>(),
    row<fmapi::GetQosBandwidthLimit, DeviceContext, bandwidth_limit>(),
    row<fmapi::SetQosBandwidthLimit, DeviceContext, set_bandwidth_limit>(),
};

// What a multi-headed device has beside, through each of its heads and its LD pool CCI.
constexpr Row<DeviceContext> kHeadRows[] = {
    row<fmapi::GetMultiHeadedInfo, DeviceContext, multi_headed_info>(),
    row<fmapi::GetHeadInfo, DeviceContext, head_info>(),
};

// What the head's only LD is.
Outcome identify_sld_memory(const DeviceContext& context, const fmapi::NoPayload&) {
    const Device& device = context.device();
    const auto ld = ld_of_sld(device, context.head);
    return done(memory_identity(ld ? device.lds[*ld].size : Bytes{}));
}
constexpr Row<DeviceContext> kSldHeadRows[] = {
    row<fmapi::Identify, DeviceContext, identify_device>(),
    row<fmapi::GetHealthInfo, DeviceContext, device_health>(),
    row<fmapi::TunnelManagementCommand, DeviceContext, tunnel_inside>(),
    row<fmapi::IdentifyMemoryDevice, DeviceContext, identify_sld_memory>(),
};

// --- an LD, or an SLD ---

Outcome identify_ld(const LdContext& context, const fmapi::NoPayload&) {
    return done(type3_identity(context.device().config.ld_serial(static_cast<unsigned>(context.index))));
}

Outcome identify_memory(const LdContext& context, const fmapi::NoPayload&) {
    auto identity = memory_identity(context.ld().size);
    if (context.device().dynamic) identity.dynamic_capacity_events = EventLogs::kDynamicCapacityRecords;
    return done(identity);
}

Outcome ld_health(const LdContext& context, const fmapi::NoPayload&) { return done(context.device().health); }

// A host that has the LD could still be writing: Invalid Security State. Sanitize and Secure Erase differ in
// what becomes of encryption keys, which there are none of: both leave nothing but zeros.
Outcome erase(const LdContext& context, fmapi::Opcode opcode) {
    Ld& ld = context.ld();
    if (ld.background.running) return refuse(ReturnCode::kBusy);
    if (ld.size.value == 0) return refuse(ReturnCode::kMediaDisabled);
    if (ld.taken_by) return refuse(ReturnCode::kInvalidSecurityState);
    return start(ld, opcode, SanitizeOperation{context.device_index, context.index}, true);
}
Outcome sanitize(const LdContext& context, const fmapi::NoPayload&) {
    return erase(context, fmapi::Opcode::kSanitize);
}
Outcome secure_erase(const LdContext& context, const fmapi::NoPayload&) {
    return erase(context, fmapi::Opcode::kSecureErase);
}

// No tunnel: an LD has nothing behind it.
constexpr Row<LdContext> kLdRows[] = {
    row<fmapi::Identify, LdContext, identify_ld>(),
    row<fmapi::IdentifyMemoryDevice, LdContext, identify_memory>(),
    row<fmapi::GetHealthInfo, LdContext, ld_health>(),
    row<fmapi::Sanitize, LdContext, sanitize>(),
    row<fmapi::SecureErase, LdContext, secure_erase>(),
};

}  // namespace

Answer handle_device(const DeviceContext& context, fmapi::MctpType, const fmapi::Message& request) {
    // Its CCI commands (type 08h) and its FM API commands (07h) have different opcodes: one table serves
    // both.
    const Device& device = context.device();
    if (const auto* row = device.dynamic ? find_dcd_command(request.opcode) : nullptr)
        return make_answer(context.component(), request, row->run(context, request.payload));
    // A pool's tunnels lead nowhere: it is where one has come to through a tunnel.
    if (context.is_pool && request.opcode == fmapi::Opcode::kTunnelManagementCommand)
        return make_answer(context.component(), request, refuse(ReturnCode::kUnsupported));
    const bool of_heads =
        std::ranges::find(kHeadRows, request.opcode, &Row<DeviceContext>::opcode) != std::end(kHeadRows);
    if (device.config.is_multi_headed() && of_heads)
        return dispatch<DeviceContext>(context, kHeadRows, request);
    if (device.is_mld()) return dispatch<DeviceContext>(context, kMldRows, request);
    return dispatch<DeviceContext>(context, kSldHeadRows, request);
}

Answer handle_ld(const LdContext& context, fmapi::MctpType type, const fmapi::Message& request) {
    if (type != fmapi::MctpType::kCci)
        return make_answer(context.component(), request, refuse(ReturnCode::kUnsupported));
    if (const auto* row = context.device().dynamic ? find_dcd_ld_command(request.opcode) : nullptr)
        return make_answer(context.component(), request, row->run(context, request.payload));
    return dispatch<LdContext>(context, kLdRows, request);
}

Answer handle_of_host(SwitchModel& model, VppbId vppb, const fmapi::Message& request) {
    const VirtualBridge& bridge = model.bridge(vppb);
    const std::size_t device = model.ports[bridge.port].device.value();
    return handle_ld(LdContext{model, device, bridge.ld}, fmapi::MctpType::kCci, request);
}

}  // namespace memtide::emul
