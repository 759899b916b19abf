#include "cxl-emul/hosts/switch_life.h"

#include <chrono>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace memtide::emul {
namespace asio = boost::asio;

namespace {

constexpr int kAttempts = 100;
constexpr std::chrono::milliseconds kPause{20};

}  // namespace

SwitchLife::SwitchLife(asio::any_io_executor executor, SwitchConfig config,
                       std::shared_ptr<HotplugBackend> hotplug, SharedDeviceMap shared)
    : executor_(std::move(executor)),
      config_(std::move(config)),
      hotplug_(std::move(hotplug)),
      shared_(std::move(shared)) {
    for (const DeviceConfig& device : config_.devices) {
        const auto known = shared_.find(device.name);
        media_.push_back(known == shared_.end()
                             ? std::make_shared<MemoryMedia>(device.name.value, device.size)
                             : std::static_pointer_cast<MemoryMedia>(known->second.media));
    }
}

Result<> SwitchLife::power_on() {
    std::vector<std::shared_ptr<Media>> media(media_.begin(), media_.end());
    auto opened = Switch::open_on(executor_, config_, std::move(media), hotplug_, {}, shared_);
    if (!opened) return std::unexpected(opened.error());
    running_ = *std::move(opened);
    for (std::size_t i = 0; i < config_.listen.size(); ++i) {
        auto real = parse_endpoint(running_->addresses()[i]);
        if (real) config_.listen[i] = *std::move(real);
    }
    running_->capture(capture_);
    running_->start();
    if (disturbance_) running_->disturb(disturbance_);
    for (const std::uint8_t port : down_) running_->set_port_link(port, false);
    for (const std::uint8_t port : pulled_) running_->set_port_plugged(port, false);
    return {};
}

asio::awaitable<Result<>> SwitchLife::power_on_again() {
    Result<> done;
    for (int i = 0; i < kAttempts && !is_on(); ++i) {
        done = power_on();
        if (done || done.error().code != ErrorCode::kAlreadyExists) break;
        asio::steady_timer pause(executor_, kPause);
        co_await pause.async_wait(asio::use_awaitable);
    }
    co_return done;
}

asio::awaitable<void> SwitchLife::power_off() {
    if (!is_on()) co_return;
    const std::unique_ptr<Switch> ending = std::move(running_);
    ending->stop();
    // Answered behind the stop.
    (void)co_await ending->vppbs();
}

void SwitchLife::stop() {
    if (running_) running_->stop();
}

void SwitchLife::set_host_link(const HostId& host, bool up) {
    if (running_) running_->set_host_link(host, up);
}

void SwitchLife::set_device_link(const DeviceId& device, bool up) {
    if (running_) running_->set_device_link(device, up);
}

void SwitchLife::disturb(std::shared_ptr<Disturbance> disturbance) {
    disturbance_ = std::move(disturbance);
    if (running_) running_->disturb(disturbance_);
}

void SwitchLife::capture(fmapi::SwitchCapture capture) {
    capture_ = std::move(capture);
    if (running_) running_->capture(capture_);
}

void SwitchLife::set_port_link(std::uint8_t port, bool up) {
    if (up)
        down_.erase(port);
    else
        down_.insert(port);
    if (running_) running_->set_port_link(port, up);
}

void SwitchLife::set_port_plugged(std::uint8_t port, bool plugged) {
    if (plugged)
        pulled_.erase(port);
    else
        pulled_.insert(port);
    if (running_) running_->set_port_plugged(port, plugged);
}

void SwitchLife::set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) {
    if (running_) running_->set_device_health(device, health);
}

}  // namespace memtide::emul
