#pragma once

#include <string_view>

namespace memtide::fm {

// openapi.json, which the build puts into the program, with what holds for every operation filled in: entity
// tags, preconditions, refusals, and the codes of problem_table().
std::string_view openapi_document();

}  // namespace memtide::fm
