#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>

#include "common/base/error.h"

namespace memtide::agent {

// The raw data of a trace event as one thread raises it, through perf_event_open(2). It ends with this object
// or process: nothing is left behind in tracefs. Not thread safe.
class TraceRing {
  public:
    // `event` is the id that tracefs gives the event; the kernel keeps `bytes` of what was not read yet, or a
    // little more. kPermission, kNotFound when there is no such thread, kUnavailable without perf events.
    static Result<TraceRing> open(std::uint64_t event, int thread, std::size_t bytes);
    ~TraceRing();
    TraceRing(TraceRing&& other) noexcept;
    TraceRing& operator=(TraceRing&& other) noexcept;

    // What has come. `lost` is called where the kernel had no room for some.
    void drain(const std::function<void(std::span<const std::byte>)>& raw, const std::function<void()>& lost);
    // Until there is something, but not longer than that.
    void wait(std::chrono::milliseconds most) const;

  private:
    TraceRing(int file, std::span<std::byte> memory) : file_(file), memory_(memory) {}
    int file_;
    std::span<std::byte> memory_;  // a page of the kernel's, then the data
};

}  // namespace memtide::agent
