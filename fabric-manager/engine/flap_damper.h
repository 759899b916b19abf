#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric-manager/model/time.h"

namespace memtide::fm {

// The `flapping` section of the configuration.
struct FlapLimits {
    std::size_t limit = 5;        // changes within the window that are fine; 0: nothing is ever held
    Milliseconds window{60'000};  // for so long a change counts
    Milliseconds hold{60'000};    // what flaps is held until it has not changed for so long; doubles with
    Milliseconds hold_max{3'600'000};  // every further `limit` changes and every relapse, up to this
};

// Tells what comes and goes all the time from what came or went. Pure: it knows the time that it is told and
// no other. A clock that jumps back counts as one that stood still. Not thread safe.
class FlapDamper {
  public:
    using Clock = std::chrono::steady_clock;

    explicit FlapDamper(FlapLimits limits) : limits_(limits) {}

    enum class Verdict {
        kChanged,   // a change like any other
        kFlapping,  // one too many: from now on it is held
        kHeld,      // it has been held before
    };
    // Something named `key` came or went.
    Verdict note(const std::string& key, Clock::time_point now);

    struct Hold {
        std::size_t changes = 0;  // since the window began in which it was one too many
        Milliseconds length{0};   // without a change, until it is over
        Clock::time_point until;  // by this damper's time: see remaining()
    };
    // Null when it is not held.
    [[nodiscard]] const Hold* hold(const std::string& key) const;
    [[nodiscard]] std::size_t held() const { return held_; }

    struct Settled {
        std::string key;
        std::size_t changes = 0;
    };
    // Ends the holds that are over, and forgets what has been quiet for long.
    std::vector<Settled> settle(Clock::time_point now);
    // How long until settle() has something to do; nullopt when nothing is held.
    [[nodiscard]] std::optional<Clock::duration> remaining(Clock::time_point now) const;

  private:
    struct Entry {
        std::deque<Clock::time_point> recent;  // changes within the window, at most limit + 1
        std::optional<Hold> hold;
        std::size_t changes_at_length = 0;  // while it is held, since the hold grew last
        Milliseconds last_length{0};        // of the hold before, until it is forgotten
        Clock::time_point last_change;
    };
    Clock::time_point advance(Clock::time_point now);
    [[nodiscard]] Clock::time_point at(Clock::time_point now) const;
    void begin_hold(Entry& entry, Clock::time_point now);

    FlapLimits limits_;
    std::map<std::string, Entry> entries_;
    std::size_t held_ = 0;
    Clock::time_point latest_ = Clock::time_point::min();
    Clock::duration behind_{0};  // how much the clock was put back so far
};

}  // namespace memtide::fm
