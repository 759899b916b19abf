#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace memtide::agent {

// What was moved, and why, as log events: each exchange of a target at level debug ("exchange"), and what
// they come to, by target and tiers, at level info ("pages moved"), no more often than kEvery. Not thread
// safe.
class DecisionLog {
  public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr std::chrono::seconds kEvery{10};

    // Pages of 4 KiB, of one target between two neighbouring tiers.
    struct Exchange {
        std::string target{};
        std::string fast{};
        std::string slow{};
        std::uint64_t promoted_pages = 0;
        std::uint64_t demoted_pages = 0;
        std::uint64_t failed_pages = 0;
        // Of all targets between these tiers: the share of touches that fall on the faster one, as planned.
        double hit_before = 1;
        double hit_after = 1;
    };
    void note(const Exchange& exchange);
    // Tells what has come together, when it is time to.
    void flush(Time now);

    // What an exchange is for: "warmer for colder", "fills free memory", "makes room", "nothing could be
    // moved".
    static std::string reason_of(const Exchange& exchange);

  private:
    using Key = std::tuple<std::string, std::string, std::string>;  // target, faster tier, slower tier
    struct Sum {
        Exchange all{};
        std::uint64_t exchanges = 0;
    };
    std::map<Key, Sum> sums_;
    Time told_{};
};

}  // namespace memtide::agent
