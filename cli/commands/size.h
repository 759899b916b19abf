#pragma once

#include <string_view>

#include "common/base/bytes.h"

namespace memtide::cli {

// The size of a composition as people type it: a multiple of 256MiB. The error says what was probably meant.
Result<Bytes> composition_size(std::string_view text);

}  // namespace memtide::cli
