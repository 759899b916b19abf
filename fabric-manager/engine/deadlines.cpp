// What happens by the clock: a ttl that is over, a drain or an exchange that takes too long.
//
// Deadlines are instants of the wall clock, because they are journaled and shown. While the manager runs,
// what is left of them passes by the monotonic clock: whoever sets the wall clock moves none of them. A start
// computes what is left from the wall clock, which cannot be right when it is behind the journal: then from
// the journal's last instant.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"

namespace memtide::fm {

// Deadlines that came with the last change; those that went are found to be out of date when their time
// comes.
void Core::watch_deadlines(const EntryPtr& entry, const Composition& before, std::optional<Time> wall) {
    const Composition& c = entry->c;
    const bool fresh = before.revision == 0;
    std::vector<Time> times;
    if (c.expires && !c.release_requested && (fresh || c.expires != before.expires))
        times.push_back(*c.expires);
    for (const Part& part : c.parts) {
        const Part* old = before.part(part.number);
        const bool known = !fresh && old != nullptr && old->drain_deadline == part.drain_deadline;
        if (part.drain_deadline && !known) times.push_back(*part.drain_deadline);
    }
    if (c.exchange &&
        (fresh || c.exchange->deadline != (before.exchange ? before.exchange->deadline : Time{})))
        times.push_back(c.exchange->deadline);
    if (times.empty()) return;
    // Far enough, and nothing overflows.
    constexpr std::chrono::hours kFarthest{24 * 366 * 50};
    const Time current = wall.value_or(now());
    const SteadyTime steady = std::chrono::steady_clock::now();
    for (const Time time : times) {
        const auto left = std::min<Time::duration>(time - current, kFarthest);
        deadlines_.emplace(steady + std::max(left, -Time::duration(kFarthest)), Deadline{c.id, time});
    }
    deadlines_changed_.notify_all();
}

Async<> Core::run_deadlines() {
    constexpr std::chrono::seconds kClockWatch{30};
    Time wall = now();
    SteadyTime steady = std::chrono::steady_clock::now();
    while (!stopping_) {
        watch_clock(wall, steady);
        const SteadyTime current = std::chrono::steady_clock::now();
        while (!deadlines_.empty() && deadlines_.begin()->first <= current) {
            const Deadline deadline = std::move(deadlines_.begin()->second);
            deadlines_.erase(deadlines_.begin());
            const EntryPtr entry = find(deadline.composition);
            if (entry && !is_end(entry->c.state)) spawn(on_deadline(entry, deadline.time));
        }
        SteadyTime until = current + kClockWatch;
        if (!deadlines_.empty()) until = std::min(until, deadlines_.begin()->first);
        co_await deadlines_changed_.wait_until(until);
    }
}

// Tells when the wall clock was set: `expires` of older leases then no longer is when they end.
void Core::watch_clock(Time& wall, SteadyTime& steady) {
    constexpr std::chrono::seconds kTolerance{5};  // of a clock that is slewed
    const Time wall_now = now();
    const SteadyTime steady_now = std::chrono::steady_clock::now();
    const auto passed = std::chrono::duration_cast<Time::duration>(steady_now - steady);
    const auto jump = wall_now - wall - passed;
    wall = wall_now;
    steady = steady_now;
    if (jump < kTolerance && jump > -kTolerance) return;
    Event event;
    event.type = "clock.set";
    event.detail = fmt::format(
        "the wall clock was set {} by {} s; leases and drains end when they would have ended, and `expires` "
        "of "
        "older ones is off by that much",
        jump.count() > 0 ? "ahead" : "back",
        std::abs(std::chrono::round<std::chrono::seconds>(jump).count()));
    emit(std::move(event));
}

// Deadlines that were moved or lifted meanwhile are not the composition's any more.
Async<> Core::on_deadline(EntryPtr entry, Time deadline) {
    if (entry->c.expires == deadline && !entry->c.release_requested) {
        Event event;
        event.type = "composition.expired";
        event.composition = entry->c.id;
        event.host = entry->c.host;
        event.detail = "its ttl is over; it is released";
        emit(std::move(event));
        while (!stopping_) {
            const Outcome<Composition> released = co_await do_release(entry, false, {});
            if (released || released.error().code == problem::kCompositionEnded) break;
            co_await pause_us(config_.timing.retry_max);
        }
    }
    if (entry->c.exchange && entry->c.exchange->deadline == deadline)
        co_await exchange_overdue(entry, deadline);
    std::vector<std::uint32_t> numbers;
    for (const Part& part : entry->c.parts)
        if (part.state == CompositionState::kDraining && part.drain_deadline &&
            *part.drain_deadline == deadline)
            numbers.push_back(part.number);
    for (const std::uint32_t number : numbers) tell_overdue(PartRef{entry, number});
}

void Core::tell_overdue(const PartRef& ref) {
    if (std::exchange(ref.job().overdue_told, true)) return;
    std::string holders;
    for (const Holder& holder : ref.part().holders)
        holders += fmt::format("{}{} held by {} ({})", holders.empty() ? "; " : ", ", holder.block,
                               holder.command.empty() ? "unknown" : holder.command,
                               holder.pid ? std::to_string(*holder.pid) : "?");
    Event event;
    event.type = "composition.drain-overdue";
    event.composition = ref.entry->c.id;
    event.host = ref.entry->c.host;
    event.detail =
        "its memory is not offline at the drain deadline; it stays bound until it is, or until the "
        "release is forced" +
        holders;
    emit(std::move(event));
}

}  // namespace memtide::fm
