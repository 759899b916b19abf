#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/fmapi/commands/virtual_switch.h"

namespace memtide::emul {

// A slot of a host: vPPB `vppb` of the VCS `vcs` that `host` owns in `switch_name`.
struct HotplugSlot {
    SwitchId switch_name;
    HostId host;
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;
};

// A type-3 device that is to appear in a slot, with the piece of a file that is its memory.
struct HotplugDevice {
    HotplugSlot slot;
    SerialNumber serial;
    std::string media_file;
    Bytes offset;
    Bytes size;
    bool dynamic = false;  // of a DCD: its memory are the extents that the host accepts, and size is 0
};

// Carries binds and unbinds out at the hosts. Called on the switch's strand; never two calls at once for one
// switch, since binds and unbinds are that switch's one background operation.
class HotplugBackend {
  public:
    virtual ~HotplugBackend() = default;

    // Ends when the host's slot holds the device. An error promises that the host does not have it and will
    // not get it: the switch gives the LD to others after that. kConflict and kTimeout tell the manager to
    // try again (Retry Required), kUnavailable too; anything else is an Internal Error on the wire.
    virtual boost::asio::awaitable<Result<>> attach(HotplugDevice device) = 0;

    // Ends when the host can no longer reach the device. After an error the device counts as still bound.
    // kWaitForLinkDown may take as long as the host likes.
    virtual boost::asio::awaitable<Result<>> detach(HotplugSlot slot, fmapi::UnbindOption option) = 0;

    // The link between the host and a device that is bound to it went down, or is up again: nobody was asked,
    // and the device holds what it held. The device stays bound.
    virtual boost::asio::awaitable<void> set_reachable(HotplugDevice, bool) { co_return; }

    // The device in the slot has new records in its dynamic capacity log for the host, as by an interrupt
    // (MSI) of the device.
    virtual boost::asio::awaitable<void> interrupt(HotplugSlot) { co_return; }
};

// For a switch without hosts: every attach and detach succeeds at once.
std::shared_ptr<HotplugBackend> no_hotplug();

}  // namespace memtide::emul
