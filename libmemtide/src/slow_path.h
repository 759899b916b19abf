#pragma once

#include <mutex>

namespace memtide::library {

// Of whatever is rare: opening a heap, asking the kernel for the room in a tier. Nobody has it in a child of
// fork(2).
std::mutex& slow_path();

}  // namespace memtide::library
