#pragma once

#include <chrono>
#include <thread>

namespace memtide::test {

// Calls `reached` until it is true; false when that does not happen in 60 s.
template <typename F>
bool eventually(F reached) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!reached()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

}  // namespace memtide::test
