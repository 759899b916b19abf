#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cxl-emul/rack/rack_host.h"
#include "cxl-emul/switch/hotplug.h"

namespace memtide::emul {

// Carries the binds and unbinds of the rack's switches out at its QEMU hosts, and remembers why the last one
// of a slot failed: the FM API only has a return code for that.
class RackHotplug : public HotplugBackend {
  public:
    void add(std::shared_ptr<RackHost> host);
    void clear();

    boost::asio::awaitable<Result<>> attach(HotplugDevice device) override;
    boost::asio::awaitable<Result<>> detach(HotplugSlot slot, fmapi::UnbindOption option) override;

    // A card that is pulled, and plugged in again.
    boost::asio::awaitable<void> set_reachable(HotplugDevice device, bool reachable) override;

    // Empty when the last bind or unbind of the slot went well.
    [[nodiscard]] std::string last_error(const std::string& switch_name, std::uint8_t vcs,
                                         std::uint8_t vppb) const;

    // What the unbind of the slot that is under way waits for; empty when there is none, or it does not wait.
    [[nodiscard]] std::string waits_for(const HotplugSlot& slot) const;

  private:
    Result<> remember(const HotplugSlot& slot, const char* what, Result<> result);
    std::map<std::string, std::shared_ptr<RackHost>> hosts_;
    std::map<std::string, std::string> errors_;  // by slot
};

}  // namespace memtide::emul
