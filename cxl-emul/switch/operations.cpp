#include "cxl-emul/switch/operations.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "common/base/no_throw.h"
#include "common/log/log.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace {

using fmapi::ReturnCode;
using Clock = std::chrono::steady_clock;

ReturnCode code_of_media_error(ErrorCode error) {
    switch (error) {
        case ErrorCode::kNotFound:
            return ReturnCode::kMediaDisabled;
        case ErrorCode::kExhausted:
            return ReturnCode::kResourcesExhausted;
        case ErrorCode::kCancelled:
            return ReturnCode::kAborted;
        default:
            return ReturnCode::kPermanentMediaFailure;
    }
}

ReturnCode code_of_hotplug_error(ErrorCode error) {
    switch (error) {
        case ErrorCode::kConflict:
        case ErrorCode::kTimeout:
        case ErrorCode::kUnavailable:
            return ReturnCode::kRetryRequired;
        default:
            return ReturnCode::kInternalError;
    }
}

}  // namespace

struct Operations::Running {
    Running(const asio::any_io_executor& strand, Operation what, std::chrono::milliseconds time)
        : operation(what), emulated_time(time), timer(strand) {}

    Operation operation;
    std::chrono::milliseconds emulated_time;
    Disturbance::Course course;
    Clock::time_point started = Clock::now();
    bool interrupted = false;
    asio::steady_timer timer;
    // Also held by the erasing thread.
    std::shared_ptr<EraseControl> erase = std::make_shared<EraseControl>();

    [[nodiscard]] bool is_held() const { return course.held && *course.held; }
    void interrupt() {
        interrupted = true;
        erase->cancel = true;
        timer.cancel();
    }
};

Operations::Operations(asio::any_io_executor strand, const SwitchConfig& config, SwitchModel& model,
                       std::vector<std::shared_ptr<Media>> media, std::shared_ptr<HotplugBackend> hotplug)
    : strand_(std::move(strand)),
      config_(config),
      model_(model),
      media_(std::move(media)),
      hotplug_(std::move(hotplug)) {}

std::chrono::milliseconds Operations::time_of(const Operation& operation) const {
    if (std::holds_alternative<BindOperation>(operation)) return config_.bind_time;
    if (std::holds_alternative<SanitizeOperation>(operation)) return config_.sanitize_time;
    const auto* pid = std::get_if<PidBindingOperation>(&operation);
    if (pid != nullptr && model_.bridge(pid->vppb).pid->state == VirtualBridge::State::kBinding)
        return config_.bind_time;
    return config_.unbind_time;
}

void Operations::launch(const Operation& operation, std::shared_ptr<void> owner) {
    auto running = std::make_shared<Running>(strand_, operation, time_of(operation));
    if (disturbance_) running->course = disturbance_->course_of(model_, operation);
    running->emulated_time += running->course.longer;
    running_.push_back(running);
    if (stopped_) running->interrupt();
    asio::co_spawn(strand_, run(std::move(running), std::move(owner)), asio::detached);
}

void Operations::refresh_progress() {
    for (const auto& running : running_) {
        unsigned percent = 100;
        if (running->emulated_time.count() > 0) {
            const auto spent =
                std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - running->started);
            percent =
                static_cast<unsigned>(std::min<std::int64_t>(100, spent * 100 / running->emulated_time));
        }
        if (std::holds_alternative<SanitizeOperation>(running->operation))
            percent = std::min(percent, running->erase->percent.load());
        if (running->is_held()) percent = 0;
        // 100 is for operations that have ended.
        component_of(model_, running->operation).background.percent = std::min(percent, 99u);
    }
}

void Operations::obey_aborts() {
    for (const auto& running : running_)
        if (component_of(model_, running->operation).background.abort_requested) running->interrupt();
}

void Operations::stop() {
    stopped_ = true;
    for (const auto& running : running_) running->interrupt();
    for (const auto& running : erasing_) running->interrupt();
}

void Operations::interrupt(const Which& which) {
    for (const auto& running : running_)
        if (which(running->operation)) running->interrupt();
}

bool Operations::any(const Which& which) const {
    return std::ranges::any_of(running_, [&](const auto& running) { return which(running->operation); });
}

void Operations::look_again() {
    for (const auto& running : running_)
        if (running->course.held) running->timer.cancel();
}

void Operations::log_end(const Running& running, ReturnCode code) const {
    if (!log::is_enabled(log::Level::kInfo)) return;
    const Component::Background& background = component_of(model_, running.operation).background;
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - running.started);
    log::info("background operation ended", {{"switch", config_.name},
                                             {"operation", fmapi::to_string(background.opcode)},
                                             {"code", fmapi::to_string(code)},
                                             {"ms", took.count()}});
}

asio::awaitable<void> Operations::run(std::shared_ptr<Running> running, std::shared_ptr<void> owner) {
    ReturnCode code = ReturnCode::kInternalError;
    try {
        code = co_await carry_out(*running);
    } catch (const std::exception& e) {
        log::error("background operation failed", {{"switch", config_.name}, {"error", e.what()}});
    }
    log_end(*running, code);
    finish(model_, running->operation, code);
    running_.remove(running);
    erase_released(owner);
}

asio::awaitable<ReturnCode> Operations::carry_out(Running& running) {
    if (const auto* operation = std::get_if<BindOperation>(&running.operation))
        co_return co_await bind(running, operation->vppb);
    if (const auto* operation = std::get_if<UnbindOperation>(&running.operation))
        co_return co_await unbind(running, *operation);
    // No host of ours sees anything of it: only the emulated time passes.
    if (std::holds_alternative<PidBindingOperation>(running.operation))
        co_return co_await spend_time(running) ? ReturnCode::kSuccess : ReturnCode::kAborted;
    co_return co_await sanitize(running, std::get<SanitizeOperation>(running.operation));
}

asio::awaitable<bool> Operations::spend_time(Running& running) {
    const Clock::time_point end = running.started + running.emulated_time;
    while (!running.interrupted && (running.is_held() || Clock::now() < end)) {
        running.timer.expires_at(running.is_held() ? Clock::time_point::max() : end);
        co_await running.timer.async_wait(kNoThrow);
    }
    co_return !running.interrupted;
}

HotplugSlot Operations::slot_of(VppbId id) const {
    const Vcs& vcs = model_.vcss[id.vcs];
    const PortConfig* upstream = config_.port(vcs.config.upstream_port);
    return {config_.name, upstream->host.value_or(HostId()), vcs.config.id, id.vppb};
}

HotplugDevice Operations::device_at(VppbId id) const {
    const VirtualBridge& bridge = std::as_const(model_).bridge(id);
    const std::size_t device = model_.ports[bridge.port].device.value();
    const Ld& ld = model_.devices[device].lds[bridge.ld];
    return {.slot = slot_of(id),
            .serial = model_.devices[device].config.ld_serial(static_cast<unsigned>(bridge.ld)),
            .media_file = media_[device]->path(),
            .offset = ld.offset,
            .size = ld.size,
            .dynamic = model_.devices[device].dynamic.has_value()};
}

asio::awaitable<ReturnCode> Operations::bind(Running& running, VppbId id) {
    if (!co_await spend_time(running)) co_return ReturnCode::kAborted;
    if (running.course.ends_with) co_return *running.course.ends_with;
    const HotplugDevice device = device_at(id);
    const std::size_t index = model_.ports[model_.bridge(id).port].device.value();
    if (const auto there = media_[index]->check(); !there) {
        log::error("bind refused", {{"switch", config_.name}, {"error", there.error()}});
        co_return code_of_media_error(there.error().code);
    }
    // From here on the host may see the device.
    model_.background.can_abort = false;
    if (const auto attached = co_await hotplug_->attach(device); !attached) {
        log::error("hot-plug failed", {{"switch", config_.name},
                                       {"host", device.slot.host},
                                       {"vppb", device.slot.vppb},
                                       {"serial", device.serial},
                                       {"error", attached.error()}});
        co_return code_of_hotplug_error(attached.error().code);
    }
    co_return ReturnCode::kSuccess;
}

asio::awaitable<ReturnCode> Operations::unbind(Running& running, const UnbindOperation& operation) {
    co_await spend_time(running);
    if (stopped_) co_return ReturnCode::kAborted;
    if (running.course.ends_with) co_return *running.course.ends_with;
    const HotplugSlot slot = slot_of(operation.vppb);
    if (const auto detached = co_await hotplug_->detach(slot, operation.option); !detached) {
        log::error("hot-unplug failed", {{"switch", config_.name},
                                         {"host", slot.host},
                                         {"vppb", slot.vppb},
                                         {"error", detached.error()}});
        co_return code_of_hotplug_error(detached.error().code);
    }
    co_return ReturnCode::kSuccess;
}

asio::awaitable<ReturnCode> Operations::sanitize(Running& running, const SanitizeOperation& operation) {
    const Ld& ld = model_.devices[operation.device].lds[operation.ld];
    co_return co_await erase(running, operation.device, ld.offset, ld.size);
}

asio::awaitable<ReturnCode> Operations::erase(Running& running, std::size_t device, Bytes offset,
                                              Bytes size) {
    // The thread shares only what it needs: it must never be the one that destroys this object.
    auto erase = [media = media_[device], control = running.erase, offset,
                  size]() -> asio::awaitable<Result<>> { co_return media->erase(offset, size, *control); };
    Result<> erased;
    const SanitizeEffect effect = config_.devices[device].sanitize;
    if (running.course.ends_with) {
        const bool interrupted = !co_await spend_time(running);
        co_return interrupted ? ReturnCode::kAborted : *running.course.ends_with;
    }
    if (effect == SanitizeEffect::kDoesNothing || !running.course.erases) {
        media_[device]->pretend_to_erase(offset, size);
        running.erase->percent = 100;
    } else if (effect == SanitizeEffect::kFails) {
        erased = fail(ErrorCode::kIo, "the topology says that it fails");
    } else if (media_[device]->erases_at_once()) {
        erased = media_[device]->erase(offset, size, *running.erase);
    } else {
        if (!eraser_) eraser_.emplace(1);
        erased = co_await asio::co_spawn(eraser_->get_executor(), std::move(erase), asio::use_awaitable);
    }
    if (!erased) {
        log::error("sanitize failed", {{"switch", config_.name},
                                       {"device", config_.devices[device].name},
                                       {"offset", offset.value},
                                       {"size", size.value},
                                       {"error", erased.error()}});
        co_return code_of_media_error(erased.error().code);
    }
    // All zeros now; only the emulated time may be cut short.
    if (!co_await spend_time(running)) co_return ReturnCode::kAborted;
    co_return ReturnCode::kSuccess;
}

void Operations::erase_released(const std::shared_ptr<void>& owner) {
    for (std::size_t device = 0; device < model_.devices.size() && !stopped_; ++device) {
        if (!model_.devices[device].dynamic) continue;
        DynamicCapacity& memory = model_.devices[device].dynamic->memory;
        while (const auto range = memory.take_dirty()) {
            auto running =
                std::make_shared<Running>(strand_, SanitizeOperation{device, 0}, config_.sanitize_time);
            erasing_.push_back(running);
            asio::co_spawn(strand_, erase_range(std::move(running), device, *range, owner), asio::detached);
        }
    }
}

asio::awaitable<void> Operations::erase_range(std::shared_ptr<Running> running, std::size_t device,
                                              ByteRange range, std::shared_ptr<void>) {
    ReturnCode code = ReturnCode::kInternalError;
    try {
        code = co_await erase(*running, device, {range.begin}, {range.size()});
    } catch (const std::exception& e) {
        log::error("erasing failed", {{"switch", config_.name}, {"error", e.what()}});
    }
    erasing_.remove(running);
    // A switch that stops leaves it as it is: whoever starts with this memory erases it first.
    if (!stopped_) model_.devices[device].dynamic->memory.erased(range, code == ReturnCode::kSuccess);
}

}  // namespace memtide::emul
