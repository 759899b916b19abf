#pragma once

#include <chrono>

namespace memtide::fm {

// Wall-clock instants (UTC): they are journaled and compared after a restart, so no steady clock.
using Time = std::chrono::system_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

inline double to_ms(std::chrono::nanoseconds d) {
    return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace memtide::fm
