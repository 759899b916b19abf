#pragma once

#include <string_view>

#include "common/base/error.h"

namespace memtide::library {

// Why the call that is about to fail does: errno for programs, a sentence that memtide_error() shows. Never
// throws.
void set_failure(int error_number, std::string_view sentence) noexcept;
// EINVAL, ENODEV, ... by what kind of error it is.
void set_failure(const Error& error) noexcept;

// Of this thread; empty before any.
const char* last_failure() noexcept;

}  // namespace memtide::library
