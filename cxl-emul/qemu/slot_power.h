#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "cxl-emul/qemu/qmp_client.h"

namespace memtide::emul {

// The PCIe hot-plug slot of a downstream port, seen from the machine's side of it.
//
// QEMU's cxl-downstream port has no power controller (its Slot Capabilities lack PCP), so the guest shows
// that it has let a device go by turning the power indicator off, and QEMU does nothing on that. What takes
// the device away is a write to Slot Control with power controller and power indicator both off: QEMU
// detaches the device on the spot (hw/pci/pcie.c, pcie_cap_slot_write_config). The write goes through the
// configuration address and data ports while the machine is stopped, so that the guest's own use of them is
// not disturbed.

// What the guest shows at the slot (PCIe 6.0, 7.5.3.10, Power Indicator Control): on while the device may be
// in use, blinking between an attention button press and what it leads to, off when the device was let go.
enum class PowerIndicator { kOn, kBlinking, kOff };
boost::asio::awaitable<Result<PowerIndicator>> power_indicator(QmpClient& qmp, std::string port);

// Takes the device of the slot away at once, with or without the guest's consent. The guest sees presence and
// link go down, as when a card is pulled.
boost::asio::awaitable<Result<>> pull_card(QmpClient& qmp, std::string port);

// True when QEMU still has a device of that id.
boost::asio::awaitable<Result<bool>> device_exists(QmpClient& qmp, std::string id);

}  // namespace memtide::emul
