#pragma once

#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include "cxl-emul/faults/switch_equipment.h"
#include "cxl-emul/rack/rack.h"

namespace memtide::emul {

// The switches and QEMU hosts of a rack, for faults on demand. The rack outlives it.
class RackEquipment final : public SwitchEquipment {
  public:
    RackEquipment(boost::asio::any_io_executor executor, Rack& rack)
        : SwitchEquipment(rack.topology(), rack.switches()), executor_(std::move(executor)), rack_(rack) {}

    // Over QMP, to every host that has the device, or the LD that the fault names.
    void tell_hosts(const DeviceId& device, const Fault& fault) override;

  private:
    boost::asio::awaitable<void> inject(DeviceId device, Fault fault);

    boost::asio::any_io_executor executor_;
    Rack& rack_;
};

// A QMP command of QEMU's type-3 device (qapi/cxl.json) without its "path".
struct InjectCommand {
    std::string name;
    boost::json::object arguments;
};
// For a fault of kind media-error or poison.
InjectCommand inject_command(const Fault& fault);

}  // namespace memtide::emul
