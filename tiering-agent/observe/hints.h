#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/hints/hint_ranges.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/address_space.h"

namespace memtide::agent {

// The hints in the bytes of a table (common/hints/hint_table.h), whoever wrote them; nothing when it is none,
// or is just being written. Pure.
std::optional<HintRanges> parse_hints(std::string_view table);

// What one process says of its memory. Not thread safe.
class HintReader {
  public:
    // Looks for the table among the mappings, and reads it when it has changed: else a few bytes. Of a table
    // that makes no sense, or is being written, what it said before holds. Needs to be allowed to trace the
    // process; does not wait for it.
    void refresh(const Files& files, int pid, const std::vector<Vma>& vmas);
    [[nodiscard]] const HintRanges& hints() const { return hints_; }

  private:
    HintRanges hints_;
    std::uint64_t address_ = 0;
    std::optional<std::uint32_t> sequence_{};  // of what was read
};

}  // namespace memtide::agent
