#pragma once

#include <chrono>
#include <cstdint>

namespace memtide::agent {

// Which of two ways to look at a process fits it: one that sees writes alone, page by page, and costs the
// process a page fault for each page that it writes; or one that sees reads as well, costs it nothing, and
// knows small pages by regions where there are many. The first, as long as writes tell what is touched, and
// what they cost lets it be asked often enough. Both are tried at the start, and the other one now and then:
// sooner when the one that was chosen sees much more or less than it did. A pure state machine.
class WayChoice {
  public:
    enum class Way { kWrites, kAccesses };
    // `slowdown` as of Pace::Options.
    explicit WayChoice(double slowdown) : slowdown_(slowdown) {}

    // For the next window.
    [[nodiscard]] Way next() const;
    // Whether that is only to know what the other way would see.
    [[nodiscard]] bool is_trial() const { return next() != way(); }
    // Pages that a window saw touched. `faulting`: share of the window that the process was busy with the
    // page faults of its writes.
    void note(Way way, std::uint64_t touched_pages, double faulting = 0);
    // What a window of the first way cost the process in the end.
    void note_cost(std::chrono::microseconds disturbance);
    // Of huge pages, which are few, the second way sees each, and can look often; writes tell of them only
    // where it is known which came first.
    void set_only_accesses(bool only) { only_accesses_ = only; }
    // The way that was chosen so far.
    [[nodiscard]] Way way() const { return only_accesses_ ? Way::kAccesses : way_; }

  private:
    struct Tried {
        unsigned times = 0;
        double touched = 0;  // average
    };
    [[nodiscard]] bool is_known() const;
    void decide();

    double slowdown_;
    Tried writes_;
    Tried accesses_;
    double cost_us_ = 0;  // average, as the next
    double faulting_ = 0;
    Way way_ = Way::kWrites;
    bool only_accesses_ = false;
    unsigned between_trials_ = 2;
    unsigned to_trial_ = 2;  // windows
};

}  // namespace memtide::agent
