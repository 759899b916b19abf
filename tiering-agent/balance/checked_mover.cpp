#include "tiering-agent/balance/checked_mover.h"

namespace memtide::agent {

Result<std::vector<int>> CheckedMover::move(int pid, std::span<const std::uint64_t> pages, int node) {
    const auto known = start_times_.find(pid);
    if (known == start_times_.end()) return fail(ErrorCode::kNotFound, "the process is not known");
    if (auto same = check_same(files_, {pid, known->second}); !same) return std::unexpected(same.error());
    return mover_.move(pid, pages, node);
}

}  // namespace memtide::agent
