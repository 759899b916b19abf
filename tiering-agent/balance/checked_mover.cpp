#include "tiering-agent/balance/checked_mover.h"

#include <string>

namespace memtide::agent {

Result<std::vector<int>> CheckedMover::move(int pid, std::span<const std::uint64_t> pages, int node) {
    const auto known = start_times_.find(pid);
    const auto text = files_.read("proc/" + std::to_string(pid) + "/stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (known == start_times_.end() || !stat || stat->start_time != known->second)
        return fail(ErrorCode::kNotFound, "the process has ended");
    return mover_.move(pid, pages, node);
}

}  // namespace memtide::agent
