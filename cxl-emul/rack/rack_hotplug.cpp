#include "cxl-emul/rack/rack_hotplug.h"

#include <fmt/format.h>

#include "common/log/log.h"

namespace memtide::emul {
namespace asio = boost::asio;

namespace {
std::string key(const std::string& switch_name, std::uint8_t vcs, std::uint8_t vppb) {
    return fmt::format("{}/{}/{}", switch_name, vcs, vppb);
}
}  // namespace

void RackHotplug::add(std::shared_ptr<RackHost> host) { hosts_[host->name()] = std::move(host); }
void RackHotplug::clear() { hosts_.clear(); }

Result<> RackHotplug::remember(const HotplugSlot& slot, const char* what, Result<> result) {
    const auto name = key(slot.switch_name.value, slot.vcs, slot.vppb);
    if (result) {
        errors_.erase(name);
        log::info(
            what,
            {{"host", slot.host}, {"switch", slot.switch_name}, {"vcs", slot.vcs}, {"vppb", slot.vppb}});
    } else {
        errors_[name] = result.error().message;
        log::warning(what, {{"host", slot.host},
                            {"switch", slot.switch_name},
                            {"vcs", slot.vcs},
                            {"vppb", slot.vppb},
                            {"error", result.error()}});
    }
    return result;
}

asio::awaitable<Result<>> RackHotplug::attach(HotplugDevice device) {
    const auto host = hosts_.find(device.slot.host.value);
    const auto slot = device.slot;
    if (host == hosts_.end())
        co_return remember(slot, "plug", fail(ErrorCode::kUnavailable, "no host named " + slot.host.value));
    auto attached = co_await host->second->qemu().attach(std::move(device));
    co_return remember(slot, "plug", std::move(attached));
}

asio::awaitable<Result<>> RackHotplug::detach(HotplugSlot slot, fmapi::UnbindOption option) {
    const auto host = hosts_.find(slot.host.value);
    if (host == hosts_.end()) co_return Result<>{};  // no host, no device in it
    auto detached = co_await host->second->qemu().detach(slot, option);
    co_return remember(slot, "unplug", std::move(detached));
}

asio::awaitable<void> RackHotplug::set_reachable(HotplugDevice device, bool reachable) {
    const auto host = hosts_.find(device.slot.host.value);
    if (host == hosts_.end()) co_return;
    const auto slot = device.slot;
    if (reachable) {
        auto attached = co_await host->second->qemu().attach(std::move(device));
        (void)remember(slot, "link up", std::move(attached));
    } else {
        auto detached = co_await host->second->qemu().detach(slot, fmapi::UnbindOption::kSurpriseHotRemove);
        (void)remember(slot, "link down", std::move(detached));
    }
}

std::string RackHotplug::waits_for(const HotplugSlot& slot) const {
    const auto host = hosts_.find(slot.host.value);
    return host == hosts_.end() ? std::string() : host->second->qemu().waits_for(slot);
}

std::string RackHotplug::last_error(const std::string& switch_name, std::uint8_t vcs,
                                    std::uint8_t vppb) const {
    const auto found = errors_.find(key(switch_name, vcs, vppb));
    return found == errors_.end() ? std::string() : found->second;
}

}  // namespace memtide::emul
