#pragma once

#include <memkind.h>

#include "common/base/error.h"

namespace memtide::library {

// libmemkind, loaded when the first heap is wanted: programs that only give hints do without it, and those
// that want a heap are told when it is missing.
struct MemkindLibrary {
    decltype(&::memkind_create_fixed) create_fixed = nullptr;
    decltype(&::memkind_malloc) malloc = nullptr;
    decltype(&::memkind_calloc) calloc = nullptr;
    decltype(&::memkind_posix_memalign) posix_memalign = nullptr;
    decltype(&::memkind_realloc) realloc = nullptr;
    decltype(&::memkind_free) free = nullptr;
    decltype(&::memkind_malloc_usable_size) usable_size = nullptr;
    decltype(&::memkind_error_message) error_message = nullptr;
    memkind_t default_kind = nullptr;
};

// kConflict with what to install. Stays loaded. The caller holds slow_path().
Result<const MemkindLibrary*> load_memkind();

}  // namespace memtide::library
