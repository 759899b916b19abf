#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tiering-agent/far/cgroup_memory.h"
#include "tiering-agent/far/far_tier.h"
#include "tiering-agent/policy/cold_pages.h"
#include "tiering-agent/policy/far_pace.h"
#include "tiering-agent/policy/targets.h"

namespace memtide::agent {

// A process of a target that has `far`.
struct FarProcess {
    std::uint64_t space = 0;
    ProcessId process{};
    std::size_t target = 0;
    std::string cgroup{};
    HeatMap* heat = nullptr;
    const std::vector<VirtualRange>* ranges = nullptr;          // that may leave, by ascending address
    const std::vector<std::uint64_t>* pages_by_tier = nullptr;  // of the last look
    std::span<const HintRange> hints{};                         // what it says of its memory
    bool sees_reads = true;                                     // the way in which it is watched does
    bool may_send = false;                                      // the target's mode is `move`
};

// What it has come to. Pages of 4 KiB.
struct FarStatus {
    struct OfTarget {
        std::string state{};               // as to_string(FarState), or "observed", "unavailable"
        std::string why{};                 // a sentence for people
        std::uint64_t cold_pages = 0;      // that may go
        std::uint64_t out_pages = 0;       // that are there now
        std::uint64_t sent_pages = 0;      // ever, as the next
        std::uint64_t returned_pages = 0;  // and of these, too soon
        std::uint64_t returned_soon_pages = 0;
        std::map<int, std::uint64_t> kept_pages{};  // that it did not take, by errno
    };
    std::string tier{};         // "swap"; empty: no target has `far`
    std::string unavailable{};  // why not, or empty
    FarRoom room{};
    std::map<std::size_t, OfTarget> targets{};  // by position; those that have `far`
    std::chrono::microseconds processor_time{};
    std::uint64_t memory_bytes = 0;  // that it takes to remember how cold pages are
};

// Sends cold pages of processes to the far tier, for each cgroup of a target as much as its FarPace allows.
// One thread.
class FarKeeper {
  public:
    using Time = std::chrono::steady_clock::time_point;
    struct Options {
        double processor_share = 0.01;  // of one, that sending may cost
        std::chrono::milliseconds interval{5'000};
    };
    FarKeeper(FarTier& tier, const Files& files, const Options& options)
        : tier_(tier), files_(files), options_(options) {}

    // After a window was looked at: `processes` are all that have `far`, by ascending space; `targets` may be
    // others than before. Ends early when `may_go_on` says no.
    void round(const std::vector<FarProcess>& processes, const std::vector<TieringTarget>& targets, Time now,
               const std::function<bool()>& may_go_on);

    [[nodiscard]] const FarStatus& status() const { return status_; }

  private:
    struct Space {
        ColdPages cold{false};
        Time noted_at{};
        unsigned rounds = 0;           // since then
        std::uint64_t check_from = 0;  // where what is out is looked for next
    };
    // Of one cgroup of one target.
    struct Group {
        explicit Group(const FarLimits& its_limits);
        FarLimits limits;
        FarPace pace;
        std::optional<CgroupMemory> before{};
        FarPace::Interval since{};  // since the last step
        std::vector<const FarProcess*> processes{};
        ColdPages::Histogram cold{};
    };
    using GroupKey = std::pair<std::size_t, std::string>;

    void note(const std::vector<FarProcess>& processes, const std::vector<TieringTarget>& targets, Time now);
    void step(const std::vector<TieringTarget>& targets, double seconds,
              const std::function<bool()>& may_go_on);
    [[nodiscard]] std::uint64_t budget(Group& group, const TieringTarget& target, const std::string& cgroup,
                                       std::uint64_t room, double seconds);
    std::uint64_t send(Group& group, std::size_t target, std::uint64_t most,
                       const std::function<bool()>& may_go_on);
    std::uint64_t send(const FarProcess& process, std::size_t target, const std::vector<FarUnit>& units);
    void check_out(const FarProcess& process);
    [[nodiscard]] std::map<std::size_t, std::uint8_t> slowest_tiers(
        const std::vector<FarProcess>& processes) const;
    [[nodiscard]] std::uint64_t read_room();
    void tell(const Group& group, std::size_t target, const TieringTarget& wanted);

    FarTier& tier_;
    const Files& files_;
    Options options_;
    std::map<std::uint64_t, Space> spaces_;
    std::map<GroupKey, Group> groups_;
    std::map<std::size_t, std::uint8_t> tier_of_target_;
    Time stepped_at_{};
    Time step_at_{};
    FarStatus status_;
};

}  // namespace memtide::agent
