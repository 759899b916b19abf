#pragma once

#include <chrono>
#include <cstdint>

namespace memtide::agent {

// How long a window is, and how long to rest before the next. A window should touch some of what fits into
// the faster tier, and not all: in one that is too long everything is touched, in one that is too short
// nothing, and neither ranks pages. Rests keep the cost of looking below a share of a processor, and below a
// share of the time of those who are looked at; what has begun to change gets more, for a while, and where
// there is nothing to be gained they double. A pure state machine: no clock of its own.
class Pace {
  public:
    using milliseconds = std::chrono::milliseconds;
    struct Options {
        milliseconds shortest_window{1};  // and never shorter than its blur
        milliseconds longest_window{2'000};
        // From one window to the next, and while things move. The more windows, the more often chance looks
        // like a change.
        milliseconds shortest_period{500};
        milliseconds shortest_period_changing{100};
        milliseconds longest_rest{60'000};      // unless what a look costs asks for more
        double processor_share = 0.01;          // of one, in the long run
        double processor_share_changing = 0.2;  // while things move
        // Of the time of who is watched: looking costs them, too.
        double slowdown = 0.02;
        double slowdown_changing = 0.2;
    };
    // What a window and the plan after it came to. Pages of 4 KiB.
    struct Round {
        std::uint64_t present_pages = 0;  // of what was looked at; 0: the rest of it says nothing
        std::uint64_t touched_pages = 0;
        std::uint64_t touched_slow_pages = 0;  // of these
        // Far more were touched than were counted: the first ones of each process are known, and are enough.
        bool is_cut = false;
        std::uint64_t fast_pages = 0;  // that the faster tier has for what is watched
        std::uint64_t moved_pages = 0;
        bool is_even = false;               // nothing is to be gained
        std::chrono::microseconds cost{0};  // processor time of the look and the plan
        std::chrono::microseconds blur{0};  // between the first and the last page that a window begins for
        std::chrono::microseconds disturbance{0};  // of those who are watched, since the last round
    };

    explicit Pace(const Options& options);
    void note(const Round& round);
    // Something else has seen that things begin to change.
    void wake() { quiet_rounds_ = even_rounds_ = 0; }
    // From the next round on; what has been found so far stays.
    void set_options(const Options& options) { options_ = options; }

    [[nodiscard]] milliseconds window() const { return window_; }
    // How many pages a window should see touched, where the faster tier has so many.
    [[nodiscard]] static std::uint64_t wanted_pages(std::uint64_t fast_pages);
    [[nodiscard]] milliseconds rest() const { return rest_; }
    // Things move or have moved in the last few rounds, or more is touched in the slower tier than used to
    // be.
    [[nodiscard]] bool is_changing() const { return quiet_rounds_ < kQuiet; }

  private:
    static constexpr unsigned kQuiet = 8;  // rounds; as long as it takes the lasting heat to tell
    bool is_surprised(const Round& round);
    void set_window(const Round& round);
    void set_rest(const Round& round);

    Options options_;
    milliseconds window_;
    milliseconds rest_{0};
    unsigned quiet_rounds_ = 0;
    unsigned even_rounds_ = 0;  // in a row, while nothing moved
    double slow_touches_ = -1;  // usual number of slow pages touched in a window of this length; -1: unknown
};

}  // namespace memtide::agent
