#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "cxl-emul/hosts/memory_media.h"
#include "cxl-emul/switch/switch.h"

namespace memtide::emul {

// An emulated switch that can lose its power and get it back, and the media of its devices, which keep their
// content: the worst that can be. Not thread safe.
class SwitchLife {
  public:
    // Media in `shared` are MemoryMedia.
    SwitchLife(boost::asio::any_io_executor executor, SwitchConfig config,
               std::shared_ptr<HotplugBackend> hotplug, SharedDeviceMap shared = {});

    // Errors as Switch::open. Keeps the ports that it got for the times to come.
    Result<> power_on();
    // As power_on(), while the old life may not have let go of its ports yet.
    boost::asio::awaitable<Result<>> power_on_again();
    // Ends when nothing of it runs or listens any more.
    boost::asio::awaitable<void> power_off();
    void stop();

    // Null while it has no power.
    [[nodiscard]] Switch* running() const { return running_.get(); }
    [[nodiscard]] bool is_on() const { return running_ != nullptr; }
    [[nodiscard]] const SwitchConfig& config() const { return config_; }
    [[nodiscard]] const std::vector<std::shared_ptr<MemoryMedia>>& media() const { return media_; }
    void set_host_link(const HostId& host, bool up);
    void set_device_link(const DeviceId& device, bool up);
    void set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health);

    // As the switch's, and also of its next lives.
    void disturb(std::shared_ptr<Disturbance> disturbance);
    void capture(fmapi::SwitchCapture capture);
    void set_port_link(std::uint8_t port, bool up);
    void set_port_plugged(std::uint8_t port, bool plugged);

  private:
    boost::asio::any_io_executor executor_;
    SwitchConfig config_;
    std::shared_ptr<HotplugBackend> hotplug_;
    SharedDeviceMap shared_;
    std::vector<std::shared_ptr<MemoryMedia>> media_;
    std::shared_ptr<Disturbance> disturbance_;
    fmapi::SwitchCapture capture_;
    std::set<std::uint8_t> down_;    // ports whose links are
    std::set<std::uint8_t> pulled_;  // ports whose devices are
    std::unique_ptr<Switch> running_;
};

}  // namespace memtide::emul
