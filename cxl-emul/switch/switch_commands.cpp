#include <algorithm>
#include <iterator>
#include <vector>

#include "cxl-emul/switch/command_table.h"

// Routes what arrives at the switch: Identify, tunnels to the devices behind ports, and the tables of the
// physical and the virtual switch.
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;

// As QEMU's cxl-upstream port, which is what a host of a rack sees.
constexpr std::uint16_t kSwitchVendor = 0x19e5;
constexpr std::uint16_t kSwitchDevice = 0xa128;

Outcome identify(const SwitchContext& context, const fmapi::NoPayload&) {
    return done(fmapi::IdentifyResponse{.vendor = kSwitchVendor,
                                        .device = kSwitchDevice,
                                        .subsystem_vendor = 0,
                                        .subsystem = 0,
                                        .serial = context.model.serial.value,
                                        .max_message_size = kLargestMessage,
                                        .component_type = fmapi::ComponentType::kSwitch});
}

Outcome tunnel_to_port(const SwitchContext& context, const fmapi::TunnelRequest& request) {
    SwitchModel& model = context.model;
    const auto port = model.find_port(request.id);
    if (request.target != fmapi::TunnelTarget::kPort || !port || !reachable_device(model.ports[*port]))
        return refuse(ReturnCode::kInvalidInput);
    if (model.ports[*port].perst_asserted) return refuse(ReturnCode::kRetryRequired);
    const std::size_t device = *model.ports[*port].device;
    const std::uint8_t head = model.ports[*port].config.head;
    return tunnel(request, [&](fmapi::MctpType type, const fmapi::Message& inner) {
        const Device& target = model.devices[device];
        if (target.is_mld() || target.config.is_multi_headed())
            return handle_device({model, device, head}, type, inner);
        return handle_ld({model, device, 0}, type, inner);
    });
}

const std::vector<Row<SwitchContext>>& commands() {
    static const std::vector<Row<SwitchContext>> all = [] {
        std::vector<Row<SwitchContext>> rows{
            row<fmapi::Identify, SwitchContext, identify>(),
            row<fmapi::TunnelManagementCommand, SwitchContext, tunnel_to_port>()};
        std::ranges::copy(domain_validation_commands(), std::back_inserter(rows));
        std::ranges::copy(event_commands(), std::back_inserter(rows));
        std::ranges::copy(mld_port_commands(), std::back_inserter(rows));
        std::ranges::copy(pbr_commands(), std::back_inserter(rows));
        std::ranges::copy(physical_switch_commands(), std::back_inserter(rows));
        std::ranges::copy(virtual_switch_commands(), std::back_inserter(rows));
        return rows;
    }();
    return all;
}

}  // namespace

Answer handle(SwitchModel& model, fmapi::MctpType type, const fmapi::Message& request) {
    // Type-3 device commands reach devices through the tunnel only.
    if (type != fmapi::MctpType::kFmApi) return make_answer(model, request, refuse(ReturnCode::kUnsupported));
    return dispatch<SwitchContext>({model}, commands(), request);
}

}  // namespace memtide::emul
