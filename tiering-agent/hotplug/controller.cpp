#include "tiering-agent/hotplug/controller.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/log/log.h"
#include "tiering-agent/hotplug/uevents.h"

namespace memtide::agent {
namespace {

using Clock = Reconciler::Clock;

// Would work that is under way for `before` be against the wish of `after`?
bool contradicts(const Desired& before, const Desired& after) {
    return std::ranges::any_of(before.regions, [&](const DesiredRegion& old) {
        const auto now = std::ranges::find(after.regions, old.id, &DesiredRegion::id);
        return now == after.regions.end() || now->want != old.want || now->force != old.force;
    });
}

}  // namespace

Controller::Controller(Host& host, Interruption& interruption, ControllerTiming timing,
                       std::function<void(const Observed&)> on_observed)
    : host_(host),
      interruption_(interruption),
      timing_(timing),
      on_observed_(std::move(on_observed)),
      wake_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Controller::~Controller() {
    stop();
    if (wake_event_ >= 0) close(wake_event_);
}

void Controller::start() {
    thread_ = std::thread([this] { run(); });
}

void Controller::set_desired(Desired desired) {
    const std::lock_guard lock(mutex_);
    if (desired_ && contradicts(*desired_, desired)) interruption_.request();
    desired_ = std::move(desired);
    wake();
}

void Controller::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        interruption_.request();
        wake();
    }
    if (thread_.joinable()) thread_.join();
}

void Controller::wake() const {
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then the thread is awake anyway.
    if (write(wake_event_, &one, sizeof one) < 0 && errno != EAGAIN)
        log::error("cannot wake the hot-plug thread");
}

void Controller::run() {
    auto uevents = Uevents::open();
    if (uevents) {
        uevents_ = uevents->descriptor();
    } else {
        timing_.poll = std::min(timing_.poll, timing_.blind_poll);
        log::warning("no kernel events, polling instead", {{"reason", uevents.error()}});
    }
    drain_uevents_ = [&] {
        if (uevents) uevents->drain();
    };
    reconciler_.emplace(
        host_, timing_.retry, [this] { return interruption_.requested(); },
        [this](const Observed& observed) { report(observed); });
    run_passes();
}

void Controller::run_passes() {
    for (;;) {
        Desired desired;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return;
            interruption_.reset();
            if (desired_) desired = *desired_;
        }
        // Events that came before the look are answered by it.
        drain_uevents_();
        const auto steady_now = Clock::now();
        auto pass = reconciler_->pass(desired, std::chrono::system_clock::now(), steady_now);
        if (!pass) {
            log::error("cannot look at the host's memory", {{"reason", pass.error()}});
            Observed blind{.revision_seen = desired.revision, .memdevs = {}, .regions = {}, .warnings = {}};
            blind.warnings.push_back({"cannot-look", pass.error().message});
            report(blind);
            wait(steady_now + timing_.poll);
            continue;
        }
        if (!pass->acted) wait(pass->retry_at);
    }
}

void Controller::report(const Observed& observed) {
    if (reported_ == observed) return;
    reported_ = observed;
    on_observed_(observed);
}

void Controller::wait(std::optional<Clock::time_point> until) {
    const auto now = Clock::now();
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(timing_.poll);
    if (until) left = std::min(left, std::chrono::ceil<std::chrono::milliseconds>(*until - now));
    std::array<pollfd, 2> waiting{pollfd{.fd = wake_event_, .events = POLLIN, .revents = 0},
                                  pollfd{.fd = uevents_, .events = POLLIN, .revents = 0}};  // -1 is ignored
    const auto end = now + std::max(left, std::chrono::milliseconds{0});
    for (;;) {
        const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
        const int ready =
            poll(waiting.data(), waiting.size(), static_cast<int>(std::max<std::int64_t>(timeout, 0)));
        if (ready == 0) return;
        if (ready < 0 && errno == EINTR) continue;
        break;
    }
    std::uint64_t ignored = 0;
    if (read(wake_event_, &ignored, sizeof ignored) < 0 && errno != EAGAIN)
        log::error("cannot read the wake event");
}

}  // namespace memtide::agent
