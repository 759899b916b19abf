#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tiering-agent/policy/exchange.h"
#include "tiering-agent/policy/pace.h"
#include "tiering-agent/policy/spread.h"

namespace memtide::agent {

// A process of which it is known how often it touches each page, on a machine with two tiers, and the agent's
// policy at work on it: windows, plans and moves as the agent makes them, with the time that they take. The
// score is the share of touches that fall on the faster tier, beside the best that any placement could have.
class Simulator {
  public:
    struct Machine {
        std::uint64_t fast_pages = 0;        // of the faster tier; the slower has room for all
        double copied_per_second = 250'000;  // pages; move_pages(2) of single pages, facts of 1 GB/s
        std::chrono::microseconds look_cost{20'000};
        std::uint32_t unit = 1;  // pages: 1, or kPagesPerHuge
        // Touches a second that the faster tier bears; 0: any number. The more of that it has, the later it
        // answers, as a queue does: idle / (1 - load).
        double fast_touches = 0;
        double fast_ns = 100;  // when idle
        double slow_ns = 250;
        bool spreads = true;
    };
    struct Score {
        double hit = 0;        // at the end
        double oracle = 0;     // the best possible then
        double regret = 0;     // what was missed in the run: the sum of (oracle - hit) over its seconds
        double recovered = 0;  // seconds until the hit came within 5 % of what it was at the end
        std::uint64_t moved_pages = 0;
        std::uint64_t wasted_pages = 0;
        double processor_share = 0;  // of looking
        double latency_ns = 0;       // of a touch, on the average, at the end

        [[nodiscard]] double hit_over_oracle() const { return hit / oracle; }
    };

    // `units` begin in the slower tier, except the first that fill the faster one.
    Simulator(const Machine& machine, std::size_t units, unsigned seed);

    // Touches a second of each unit, from now on.
    void set_rates(std::vector<double> rates);
    Score run(double seconds);

    [[nodiscard]] const HeatMap& heat() const { return heat_; }

  private:
    void look(double window);
    std::uint64_t plan_and_move(double seconds);
    [[nodiscard]] double hit() const;
    [[nodiscard]] double oracle() const;
    [[nodiscard]] double fast_latency() const;
    [[nodiscard]] MoveLog::Time clock() const;

    Machine machine_;
    std::mt19937_64 random_;
    std::vector<double> rates_;
    std::vector<bool> is_fast_;
    std::uint64_t fast_used_ = 0;
    double now_ = 0;
    std::uint64_t touched_ = 0;
    std::uint64_t touched_slow_ = 0;
    HeatMap heat_;
    MoveLog log_;
    Pace pace_{Pace::Options{}};
    Spread spread_;
    double probed_ = 0;
};

// Touches a second for each page, `total` of them all together.
std::vector<double> hot_set(std::size_t units, std::size_t first_hot, std::size_t hot, double share,
                            double total);
std::vector<double> zipf(std::size_t units, std::size_t keys_per_unit, double exponent, double total,
                         unsigned seed);
std::vector<double> uniform(std::size_t units, double total);

}  // namespace memtide::agent
