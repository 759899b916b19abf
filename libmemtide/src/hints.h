#pragma once

#include <atomic>
#include <cstdint>

#include "common/hints/hint_ranges.h"

namespace memtide::library {

// Hints of this process for the agent (common/hints/hint_table.h). errno as memtide_hint() has it; 0 is good.
// Thread safe.
int give_hint(std::uintptr_t address, std::size_t length, Hint hint);
// Takes back what was said of pages that lie in it as a whole; at no cost when there are no hints.
void take_hints_back(std::uintptr_t address, std::size_t length);
bool there_are_hints() noexcept;

}  // namespace memtide::library
