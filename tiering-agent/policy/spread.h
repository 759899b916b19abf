#pragma once

#include <optional>

namespace memtide::agent {

// Whether the faster tier is the bottleneck. It is faster as long as it is not overloaded: when so much falls
// on it that it answers later than the slower one, some of what is hot is better off there. Each time that
// several probes in a row agree, the share of all touches that should fall on the faster tier goes down by a
// step, or up again; between the two there is a range in which nothing changes, so that it does not swing. A
// pure state machine: no clock of its own.
//
// After: Colloid (SOSP 2024) balances access latencies of tiers; here they are probed, with steps and a dead
// band.
class Spread {
  public:
    // Latencies of one dependent load, in ns, as of now; 0: not known.
    struct Probe {
        double fast = 0;
        double slow = 0;
    };
    void note(const Probe& probe);
    void forget() { *this = {}; }

    // Of all touches, that should fall on the faster tier at most; 1: as many as can be.
    [[nodiscard]] double most_fast() const { return most_fast_; }
    // Latency of the faster tier now, as a multiple of the lowest that was seen; 1 before the first probe.
    [[nodiscard]] double loaded() const { return loaded_; }
    // `fast_share`: of all touches that fall on the faster tier now, as plans have it
    // (ExchangePlan::hit_before): where the first step starts from.
    void set_now(double fast_share) { now_ = fast_share; }

  private:
    double idle_fast_ = 0;
    double loaded_ = 1;
    double now_ = 1;
    double most_fast_ = 1;
    int overloaded_ = 0;  // probes in a row
    int relaxed_ = 0;
};

}  // namespace memtide::agent
