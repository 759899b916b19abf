// What happens by the clock: a ttl that is over, a drain that takes too long.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"

namespace memtide::fm {

// Deadlines that came with the last change; those that went are found to be out of date when their time
// comes.
void Core::watch_deadlines(const EntryPtr& entry, const Composition& before) {
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
    for (const Time time : times) deadlines_.emplace(time, c.id);
    if (!times.empty()) deadlines_changed_.notify_all();
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
            const Outcome<Composition> released = co_await do_release(entry, false, {});
            if (released || released.error().code == problem::kCompositionEnded) break;
            co_await pause_us(config_.timing.retry_max);
        }
    }
    std::vector<std::uint32_t> numbers;
    for (const Part& part : entry->c.parts)
        if (part.state == CompositionState::kDraining && part.drain_deadline &&
            *part.drain_deadline <= current)
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
