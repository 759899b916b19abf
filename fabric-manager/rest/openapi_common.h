#pragma once

#include <string_view>

namespace memtide::fm {

// openapi.json as it stands in the source: what is particular to each operation.
std::string_view openapi_source();

}  // namespace memtide::fm
