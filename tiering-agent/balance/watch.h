#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/observe/hints.h"
#include "tiering-agent/policy/heat_history.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/policy/huge_pages.h"
#include "tiering-agent/policy/targets.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {

// One process of a target: what of it may be moved, and how warm that is. Not thread safe.
class Watch {
  public:
    using Time = std::chrono::steady_clock::time_point;
    // Flags and memory policies change seldom, and are dear to read.
    static constexpr std::chrono::seconds kLookAtFlagsEvery{30};

    // How exactly it is known how long ago a page was seen touched: of HeatMap's ticks.
    static constexpr std::chrono::seconds kTick{3};

    Watch(std::uint64_t space, ProcessId process, std::size_t target)
        : space_(space), process_(process), target_(target) {}

    // Reads its mappings again, and their flags and policies where there are new ones or the time has come.
    Result<> refresh(const Files& files, const TieringTarget& target, Time now);
    // What the last window has cost the process: asked once for each, before the next begins.
    std::chrono::microseconds disturbance(const Files& files);
    // Begins a window.
    Result<> begin(Tracker& tracker, const WindowWish& wish) const;
    // What depends on the process itself filled in.
    [[nodiscard]] WindowWish with_shape(WindowWish wish) const;
    // Ends a window: what was touched goes into the heat, and what is not there any more leaves it.
    Result<Look> look(Tracker& tracker, const TierOfNode& tiers, Time now);

    [[nodiscard]] std::uint64_t space() const { return space_; }
    [[nodiscard]] ProcessId process() const { return process_; }
    [[nodiscard]] std::size_t target() const { return target_; }
    void set_target(std::size_t target) { target_ = target; }
    // Tells how it is now. One that uses no processor time is idle.
    void note(const Process& now) {
        is_idle_ = processor_time_ == now.cpu_time;
        processor_time_ = now.cpu_time;
        comm_ = now.comm;
        cgroup_ = now.cgroup;
        rss_ = now.rss;
        allowed_nodes_ = now.allowed_nodes;
    }
    [[nodiscard]] const std::string& comm() const { return comm_; }
    [[nodiscard]] const std::string& cgroup() const { return cgroup_; }
    [[nodiscard]] Bytes rss() const { return rss_; }
    // Whether its cpuset lets it have memory of one of these nodes.
    [[nodiscard]] bool may_have(const std::vector<int>& nodes) const {
        return agent::may_have(allowed_nodes_, nodes);
    }
    // For how long its pages have been looked at; as of the last look.
    [[nodiscard]] std::chrono::seconds watched_for() const { return watched_for_; }
    // As of the last refresh().
    [[nodiscard]] const std::vector<Vma>& vmas() const { return vmas_; }
    [[nodiscard]] bool is_idle() const { return is_idle_; }
    [[nodiscard]] const HeatMap& heat() const { return heat_; }
    [[nodiscard]] HeatMap& heat() { return heat_; }
    [[nodiscard]] const HeatHistory& history() const { return history_; }
    // What it takes to remember all that, in bytes.
    [[nodiscard]] std::size_t memory() const {
        return heat_.memory() + history_.memory() + huge_pages_.memory();
    }
    // Which of them to split, where its target wants that; nothing is known of any elsewhere.
    [[nodiscard]] const HugePages& huge_pages() const { return huge_pages_; }
    [[nodiscard]] HugePages& huge_pages() { return huge_pages_; }
    // What it says of its memory; nothing where its target's does not count.
    [[nodiscard]] const HintRanges& hints() const { return hints_.hints(); }

    // What may leave this host's memory: of what may be moved, what is the process's alone.
    [[nodiscard]] const std::vector<VirtualRange>& private_ranges() const { return private_ranges_; }

    // Of the last look, by tier.
    [[nodiscard]] const std::vector<std::uint64_t>& pages_by_tier() const { return pages_by_tier_; }
    [[nodiscard]] std::uint64_t present_pages() const;
    // Whether what looks untouched is untouched, and not only unwritten.
    [[nodiscard]] bool sees_reads() const { return sees_reads_; }

  private:
    std::uint64_t space_;
    ProcessId process_;
    std::size_t target_;
    bool is_idle_ = false;
    std::chrono::milliseconds processor_time_{-1};
    std::string comm_;
    std::string cgroup_;
    Bytes rss_{};
    std::optional<std::set<int>> allowed_nodes_;
    std::optional<Time> first_look_;
    std::chrono::seconds watched_for_{0};
    std::optional<std::uint64_t> faults_;
    HeatMap heat_;
    HeatHistory history_;
    HintReader hints_;
    std::vector<Vma> vmas_;
    std::vector<VirtualRange> ranges_;  // that may be moved
    std::vector<VirtualRange> private_ranges_;
    std::vector<std::uint64_t> pages_by_tier_;
    std::uint64_t pages_in_huge_ = 0;
    HugePages huge_pages_;
    bool splits_ = false;  // as its target wants it
    std::chrono::nanoseconds touch_cost_{0};
    Time look_at_flags_at_{};
    bool sees_reads_ = true;
};

}  // namespace memtide::agent
