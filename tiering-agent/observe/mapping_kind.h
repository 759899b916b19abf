#pragma once

#include <string_view>

#include "tiering-agent/observe/address_space.h"

namespace memtide::agent {

// What a mapping is, by the name that maps gives it (without " (deleted)"). Pure.
VmaKind kind_of_mapping(std::string_view name, bool is_private, bool is_deleted);

// Whether the name alone tells that its pages are hugetlbfs's: SHM_HUGETLB and MAP_HUGETLB.
bool is_hugetlb_name(std::string_view name);

}  // namespace memtide::agent
