#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/sysfs/files.h"
#include "tiering-agent/move/mover.h"
#include "tiering-agent/observe/processes.h"

namespace memtide::agent {

// Moves pages of processes that are still the ones they were: a pid may be another's by now. `files` and
// `mover` must outlive it.
class CheckedMover final : public UnitMover {
  public:
    CheckedMover(const Files& files, UnitMover& mover) : files_(files), mover_(mover) {}
    void add(ProcessId process) { start_times_[process.pid] = process.start_time; }
    // kNotFound also when the process is another one.
    Result<std::vector<int>> move(int pid, std::span<const std::uint64_t> pages, int node) override;

  private:
    const Files& files_;
    UnitMover& mover_;
    std::map<int, std::uint64_t> start_times_;
};

}  // namespace memtide::agent
