#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "cxl-emul/switch/hotplug.h"

namespace memtide::emul::test {

// Hosts that do what the test says, when it says so.
class FakeHotplug final : public HotplugBackend {
  public:
    // While closed, attach and detach do not end.
    std::atomic<bool> gate_is_open{true};
    // What they end with.
    void answer_with(Result<> result) {
        const std::lock_guard lock(mutex_);
        result_ = std::move(result);
    }
    std::vector<HotplugDevice> attached() {
        const std::lock_guard lock(mutex_);
        return attached_;
    }
    std::vector<fmapi::UnbindOption> detached() {
        const std::lock_guard lock(mutex_);
        return detached_;
    }

    std::vector<HotplugSlot> interrupted() {
        const std::lock_guard lock(mutex_);
        return interrupted_;
    }

    boost::asio::awaitable<Result<>> attach(HotplugDevice device) override {
        {
            const std::lock_guard lock(mutex_);
            attached_.push_back(std::move(device));
        }
        co_return co_await pass_gate();
    }
    boost::asio::awaitable<Result<>> detach(HotplugSlot, fmapi::UnbindOption option) override {
        {
            const std::lock_guard lock(mutex_);
            detached_.push_back(option);
        }
        co_return co_await pass_gate();
    }

    boost::asio::awaitable<void> interrupt(HotplugSlot slot) override {
        const std::lock_guard lock(mutex_);
        interrupted_.push_back(std::move(slot));
        co_return;
    }

  private:
    boost::asio::awaitable<Result<>> pass_gate() {
        boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
        while (!gate_is_open) {
            timer.expires_after(std::chrono::milliseconds(1));
            co_await timer.async_wait(boost::asio::use_awaitable);
        }
        const std::lock_guard lock(mutex_);
        co_return result_;
    }

    std::mutex mutex_;
    Result<> result_;
    std::vector<HotplugDevice> attached_;
    std::vector<fmapi::UnbindOption> detached_;
    std::vector<HotplugSlot> interrupted_;
};

// Opens the gate at the end of a test, so that the switch can stop.
struct GateOpener {
    std::shared_ptr<FakeHotplug> hotplug;
    ~GateOpener() { hotplug->gate_is_open = true; }
};

}  // namespace memtide::emul::test
