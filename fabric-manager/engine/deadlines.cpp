// What happens by the clock: a ttl that is over, a drain that takes too long.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"

namespace memtide::fm {

void Core::watch_deadlines(const EntryPtr& entry) {
    const auto watch = [&](const std::optional<Time>& time) {
        if (time) deadlines_.emplace(*time, entry->c.id);
    };
    if (!entry->c.release_requested) watch(entry->c.expires);
    watch(entry->c.drain_deadline);
    deadlines_changed_.notify_all();
}

Async<> Core::run_deadlines() {
    // The wall clock may be set meanwhile: looks again from time to time.
    constexpr std::chrono::seconds kLongest{30};
    while (!stopping_) {
        const Time current = now();
        while (!deadlines_.empty() && deadlines_.begin()->first <= current) {
            const EntryPtr entry = find(deadlines_.begin()->second);
            deadlines_.erase(deadlines_.begin());
            if (entry && !is_end(entry->c.state)) spawn(on_deadline(entry));
        }
        std::chrono::nanoseconds pause = kLongest;
        if (!deadlines_.empty())
            pause = std::min<std::chrono::nanoseconds>(pause, deadlines_.begin()->first - current);
        co_await deadlines_changed_.wait_until(std::chrono::steady_clock::now() + pause);
    }
}

Async<> Core::on_deadline(EntryPtr entry) {
    const Time current = now();
    if (entry->c.expires && *entry->c.expires <= current && !entry->c.release_requested) {
        Event event;
        event.type = "composition.expired";
        event.composition = entry->c.id;
        event.host = entry->c.host;
        event.detail = "its ttl is over; it is released";
        emit(std::move(event));
        while (!stopping_) {
            const Outcome<Composition> released = co_await do_release(entry, false);
            if (released || released.error().code == problem::kCompositionEnded) break;
            co_await pause_us(config_.timing.retry_max);
        }
    }
    const bool overdue = entry->c.state == CompositionState::kDraining && entry->c.drain_deadline &&
                         *entry->c.drain_deadline <= current;
    if (!overdue || std::exchange(entry->overdue_told, true)) co_return;
    std::string holders;
    for (const Holder& holder : entry->c.holders)
        holders += fmt::format("{}{} held by {} ({})", holders.empty() ? "; " : ", ", holder.block,
                               holder.command.empty() ? "unknown" : holder.command,
                               holder.pid ? std::to_string(*holder.pid) : "?");
    Event event;
    event.type = "composition.drain-overdue";
    event.composition = entry->c.id;
    event.host = entry->c.host;
    event.detail =
        "its memory is not offline at the drain deadline; it stays bound until it is, or until the "
        "release is forced" +
        holders;
    emit(std::move(event));
}

}  // namespace memtide::fm
