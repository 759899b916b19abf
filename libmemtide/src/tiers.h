#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/tiers.h"

// Which tiers there are, for a process without privileges.
namespace memtide::library {

// Fastest first, with their capacity. By the first of these that is there:
//   1. `wish`, of the environment variable MEMTIDE_TIERS: "fast=0;slow=1-2", or the path of a file as in 2;
//   2. what the agent publishes (tiering-agent/observe/published_tiers.h);
//   3. the rules that the agent has without configuration.
// kProtocol for a text that is none. Thread safe.
Result<std::vector<agent::Tier>> known_tiers(const Files& files, std::string_view wish);
// Of the environment, as it was when it was first asked for; empty for programs that run with others'
// privileges.
const std::string& tiers_wish();

// The one of that name; kNotFound tells which ones there are.
Result<agent::Tier> find_tier(const Files& files, std::string_view wish, std::string_view name);

// What these nodes could give to user memory now: what is free above the kernel's high watermarks, and half
// of the page cache, but for a reserve of 2 %, at most 1 GiB of each: the kernel keeps blocks of pages for
// itself, and an OOM killer that comes too early is worse than an ENOMEM that does. Nodes that are not there
// have nothing.
Bytes room_in(const Files& files, const std::vector<int>& nodes);

}  // namespace memtide::library
