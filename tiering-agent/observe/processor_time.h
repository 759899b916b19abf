#pragma once

#include <chrono>
#include <ctime>

namespace memtide::agent {

// That the calling thread has used so far.
inline std::chrono::microseconds processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) +
           std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace memtide::agent
