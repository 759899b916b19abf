#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/policy/targets.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {

// One process of a target: what of it may be moved, and how warm that is. Not thread safe.
class Watch {
  public:
    using Time = std::chrono::steady_clock::time_point;
    // Flags and memory policies change seldom, and are dear to read.
    static constexpr std::chrono::seconds kLookAtFlagsEvery{30};

    Watch(std::uint64_t space, ProcessId process, std::size_t target)
        : space_(space), process_(process), target_(target) {}

    // Reads its mappings again, and their flags and policies where there are new ones or the time has come.
    Result<> refresh(const Files& files, const TieringTarget& target, Time now);
    // Page faults of the process since the last call; 0 at the first.
    std::uint64_t new_faults(const Files& files);
    // Ends a window: what was touched goes into the heat, and what is not there any more leaves it.
    Result<Look> look(Tracker& tracker, const TierOfNode& tiers);

    [[nodiscard]] std::uint64_t space() const { return space_; }
    [[nodiscard]] ProcessId process() const { return process_; }
    [[nodiscard]] std::size_t target() const { return target_; }
    void set_target(std::size_t target) { target_ = target; }
    // Tells of the processor time that it has used so far: one that uses none is idle.
    void note_processor_time(std::chrono::milliseconds used) {
        is_idle_ = processor_time_ == used;
        processor_time_ = used;
    }
    [[nodiscard]] bool is_idle() const { return is_idle_; }
    void set_cgroup(const std::string& cgroup) { cgroup_ = cgroup; }
    [[nodiscard]] const std::string& cgroup() const { return cgroup_; }
    [[nodiscard]] const HeatMap& heat() const { return heat_; }
    [[nodiscard]] HeatMap& heat() { return heat_; }

    // What may leave this host's memory: of what may be moved, what is the process's alone.
    [[nodiscard]] const std::vector<VirtualRange>& private_ranges() const { return private_ranges_; }

    // Of the last look, by tier.
    [[nodiscard]] const std::vector<std::uint64_t>& pages_by_tier() const { return pages_by_tier_; }

  private:
    std::uint64_t space_;
    ProcessId process_;
    std::size_t target_;
    bool is_idle_ = false;
    std::chrono::milliseconds processor_time_{-1};
    std::optional<std::uint64_t> faults_;
    HeatMap heat_;
    std::vector<Vma> vmas_;
    std::vector<VirtualRange> ranges_;  // that may be moved
    std::vector<VirtualRange> private_ranges_;
    std::string cgroup_;
    std::vector<std::uint64_t> pages_by_tier_;
    Time look_at_flags_at_{};
};

}  // namespace memtide::agent
