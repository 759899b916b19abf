#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "tiering-agent/balance/balancer.h"
#include "tiering-agent/policy/heat_history.h"

namespace memtide::agent {

// --- Working sets ---

struct WorkingSets {
    // A page counts for a time when a window saw it touched within it, or it came within it.
    static constexpr std::array<std::chrono::seconds, 5> kWithin{
        std::chrono::seconds(10), std::chrono::seconds(60), std::chrono::seconds(120),
        std::chrono::seconds(300), std::chrono::seconds(600)};
    using Pages = std::array<std::uint64_t, kWithin.size()>;

    // Of what may be moved: all else is not looked at.
    struct Of {
        std::string name{};  // of the target, the path of the cgroup, or the name of the process
        std::string target{};
        int pid = 0;  // of a process
        std::size_t processes = 0;
        Bytes rss{};  // of all memory of the processes
        std::uint64_t present_pages = 0;
        Pages touched_pages{};                // by kWithin, each with what those before it have
        Pages fast_pages{};                   // of these, in the fastest tier
        std::uint64_t all_fast_pages = 0;     // of present_pages
        std::chrono::seconds watched_for{0};  // the longest of its processes: what is longer ago is not known
    };
    std::vector<Of> targets{};    // all that there are
    std::vector<Of> cgroups{};    // that have watched processes, by path
    std::vector<Of> processes{};  // by what they have, the most first; no more than kMostProcesses
    static constexpr std::size_t kMostProcesses = 100;
};

// --- The plan as it would be now ---

struct PlanPreview {
    struct OfTarget {
        std::string name{};
        std::uint64_t promoted_pages = 0;
        std::uint64_t demoted_pages = 0;
        Bytes rate_limit{};
    };
    struct OfPair {
        std::string fast{};
        std::string slow{};
        std::uint64_t fast_free = 0;  // pages, as the next
        std::uint64_t slow_free = 0;
        std::uint64_t reserve = 0;
        std::uint64_t promoted_pages = 0;
        std::uint64_t demoted_pages = 0;
        std::uint64_t most_pages = 0;  // that move in one exchange
        bool is_even = false;
        double hit_before = 1;
        double hit_after = 1;
        std::optional<unsigned> coldest_promoted{};  // heat, of PageHeat::kMost
        std::optional<unsigned> warmest_demoted{};
        std::vector<OfTarget> targets{};
    };
    struct LeftOut {
        std::string target{};
        std::string why{};
    };
    TieringMode mode = TieringMode::kOff;
    std::vector<OfPair> pairs{};
    std::vector<LeftOut> left_out{};  // targets that have no part in what is moved
    std::string note{};               // why there is nothing to plan
};

// --- Why a page is where it is ---

struct Explanation {
    int pid = 0;
    std::string comm{};
    std::uint64_t address = 0;
    std::string membership{};  // "matches target \"redis\""
    std::string target{};      // empty: none
    Vma vma{};
    // Why the agent does not move it, a sentence each; empty: it may.
    std::vector<std::string> why_not{};
    bool is_present = false;
    std::optional<int> node{};
    std::string tier{};  // empty: of none, or not known
    struct Heat {
        bool is_huge = false;
        std::uint32_t windows = 0;
        double lasting = 0;  // share of windows
        double recent = 0;
        bool is_changing = false;
        std::chrono::seconds untouched{0};  // at least so long
        unsigned weighted = 0;              // of PageHeat::kMost: what it is ranked by
    };
    std::optional<Heat> heat{};  // when it is looked at
    struct Rank {
        std::string fast{};
        std::string slow{};
        std::uint64_t warmer_pages = 0;
        std::uint64_t as_warm_pages = 0;
        std::uint64_t pages = 0;  // of both tiers that are ranked
        std::uint64_t fast_pages = 0;
        std::optional<unsigned> coldest_fast{};  // heat, of those that may move
        std::optional<unsigned> warmest_slow{};
    };
    std::optional<Rank> rank{};
    struct LastMove {
        std::chrono::seconds ago{0};
        std::string to{};     // tier; empty when it failed
        std::string error{};  // name of an errno
        bool undid = false;
        bool rests = false;
    };
    std::optional<LastMove> last_move{};
    std::string verdict{};  // a sentence: what becomes of it, and why
};

// --- Heat over time ---

struct HeatPicture {
    struct OfProcess {
        int pid = 0;
        std::string comm{};
        std::string target{};
        std::vector<std::chrono::milliseconds> columns{};  // how long ago each began
        std::vector<HeatHistory::Row> rows{};
    };
    std::vector<OfProcess> processes{};  // by what they have, the most first
    std::vector<std::string> tiers{};
    static constexpr std::size_t kMostProcesses = 8;
};

// What people want to know of a balancer: looks, and moves nothing. Only on the thread that balances, from a
// question (Balancer::questions()). Costs a walk over the heat of all pages, some milliseconds a GiB.
class Inspector {
  public:
    explicit Inspector(Balancer& balancer) : balancer_(balancer) {}

    [[nodiscard]] WorkingSets working_sets() const;
    // Also where the mode is `observe`: then of all that is watched.
    [[nodiscard]] PlanPreview plan() const;
    // kNotFound when there is no such process, or nothing is mapped there.
    [[nodiscard]] Result<Explanation> explain(int pid, std::uint64_t address) const;
    // Of one process, of those of one target, or of all; kNotFound when it is not watched, or there is none.
    [[nodiscard]] Result<HeatPicture> heat(std::optional<int> pid,
                                           const std::optional<std::string>& target) const;

  private:
    using Time = Balancer::Time;
    [[nodiscard]] const std::vector<TieringTarget>& targets() const {
        return balancer_.options_.config.targets;
    }
    [[nodiscard]] const Watch* watch_of(int pid) const;
    [[nodiscard]] std::optional<std::string> why_left_out(std::size_t target) const;
    [[nodiscard]] PlanPreview::OfPair plan_pair(std::uint8_t fast) const;
    [[nodiscard]] std::optional<std::size_t> explain_process(Explanation& answer, Process& process) const;
    [[nodiscard]] std::optional<std::string> why_cpuset_keeps(const Process& process) const;
    Result<> explain_mapping(Explanation& answer, const Process& process, const TieringTarget* target) const;
    void explain_place(Explanation& answer) const;
    void explain_heat(Explanation& answer, const Watch& watch) const;
    [[nodiscard]] Explanation::Rank rank_of(const Watch& watch, const HeatMap::Unit& unit,
                                            std::uint8_t fast) const;
    [[nodiscard]] std::string verdict_of(const Explanation& answer, const Watch& watch,
                                         const HeatMap::Unit& unit) const;

    Balancer& balancer_;
};

}  // namespace memtide::agent
