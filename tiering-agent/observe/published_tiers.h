#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tiering-agent/observe/tiers.h"

// The tiers of this machine as text that every process may read: one a line, fastest first, its name and its
// nodes, "cxl 1-2,5". A tier without nodes now is its name alone; lines with # are comments. The agent keeps
// it in kPublishedTiers, and libmemtide reads it.
namespace memtide::agent {

inline constexpr char kPublishedTiers[] = "/run/memtide/tiers";

std::string tiers_as_text(const Tiers& tiers);
// Tiers with their names and nodes alone. kProtocol for what is no such text.
Result<std::vector<Tier>> parse_published_tiers(std::string_view text);

// Puts the text at `path`, readable for everybody, at one stroke; makes the folder. kIo, kPermission.
Result<> publish_tiers(const std::string& path, const Tiers& tiers);

}  // namespace memtide::agent
