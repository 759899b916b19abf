#include "fabric-manager/engine/flap_damper.h"

#include <algorithm>

namespace memtide::fm {

// The damper's time: never earlier than what it was told before.
FlapDamper::Clock::time_point FlapDamper::at(Clock::time_point now) const {
    return std::max(now + behind_, latest_);
}

FlapDamper::Clock::time_point FlapDamper::advance(Clock::time_point now) {
    if (latest_ != Clock::time_point::min() && now + behind_ < latest_) behind_ = latest_ - now;
    latest_ = now + behind_;
    return latest_;
}

void FlapDamper::begin_hold(Entry& entry, Clock::time_point now) {
    Hold hold;
    hold.changes = entry.recent.size();
    hold.length = entry.last_length.count() == 0 ? limits_.hold : entry.last_length * 2;
    hold.length = std::min(hold.length, limits_.hold_max);
    hold.until = now + hold.length;
    entry.hold = hold;
    entry.changes_at_length = 0;
    ++held_;
}

FlapDamper::Verdict FlapDamper::note(const std::string& key, Clock::time_point now) {
    if (limits_.limit == 0) return Verdict::kChanged;
    now = advance(now);
    Entry& entry = entries_[key];
    entry.last_change = now;
    if (entry.hold) {
        ++entry.hold->changes;
        if (++entry.changes_at_length >= limits_.limit) {
            entry.changes_at_length = 0;
            entry.hold->length = std::min(entry.hold->length * 2, limits_.hold_max);
        }
        entry.hold->until = now + entry.hold->length;
        return Verdict::kHeld;
    }
    entry.recent.push_back(now);
    while (now - entry.recent.front() > limits_.window) entry.recent.pop_front();
    if (entry.recent.size() <= limits_.limit) return Verdict::kChanged;
    begin_hold(entry, now);
    return Verdict::kFlapping;
}

const FlapDamper::Hold* FlapDamper::hold(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() || !found->second.hold ? nullptr : &*found->second.hold;
}

std::vector<FlapDamper::Settled> FlapDamper::settle(Clock::time_point now) {
    now = advance(now);
    std::vector<Settled> settled;
    for (auto it = entries_.begin(); it != entries_.end();) {
        Entry& entry = it->second;
        if (entry.hold && entry.hold->until <= now) {
            settled.push_back({it->first, entry.hold->changes});
            entry.last_length = entry.hold->length;
            entry.hold.reset();
            entry.recent.clear();
            --held_;
        }
        // A relapse is remembered for as long as a hold can last.
        const bool forgotten = !entry.hold && now - entry.last_change > limits_.window + limits_.hold_max;
        it = forgotten ? entries_.erase(it) : std::next(it);
    }
    return settled;
}

std::optional<FlapDamper::Clock::duration> FlapDamper::remaining(Clock::time_point now) const {
    std::optional<Clock::time_point> first;
    for (const auto& [key, entry] : entries_)
        if (entry.hold && (!first || entry.hold->until < *first)) first = entry.hold->until;
    if (!first) return std::nullopt;
    return std::max(Clock::duration{0}, *first - at(now));
}

}  // namespace memtide::fm
