#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/sysfs/files.h"

// How much processes wait for memory (Documentation/accounting/psi.rst).
namespace memtide::agent {

// Of the last ten seconds the share, from 0 to 1, in which some task waited: "avg10" of the line "some".
// Nothing when the text has none. Pure.
std::optional<double> parse_pressure(std::string_view text);

// Of the whole machine, and of a cgroup (v2) by its path; nothing where the kernel does not tell. Thread
// safe.
std::optional<double> read_memory_pressure(const Files& files);
std::optional<double> read_memory_pressure(const Files& files, const std::string& cgroup);

}  // namespace memtide::agent
