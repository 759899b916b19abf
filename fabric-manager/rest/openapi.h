#pragma once

#include <string_view>

namespace memtide::fm {

// openapi.json, which the build puts into the program.
std::string_view openapi_document();

}  // namespace memtide::fm
