#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <linux/perf_event.h>
#include <unistd.h>

#include "common/base/error.h"

namespace memtide::agent {

// An event of perf_event_open(2) with the ring of records that the kernel fills. It ends with this object or
// process: nothing is left behind. Not thread safe.
class PerfRing {
  public:
    // Whom to watch: a thread (0: this one; -1: all), on a processor (-1: any).
    struct Where {
        int thread = -1;
        int processor = -1;
        int group = -1;  // file of the leader of a group of events
    };
    // The kernel keeps `bytes` of what was not read yet, or a little more; 0: no ring, the event only counts.
    // kPermission, kNotFound when there is no such thread or event, kUnavailable without perf events.
    static Result<PerfRing> open(perf_event_attr attributes, const Where& where, std::size_t bytes);
    ~PerfRing();
    PerfRing(PerfRing&& other) noexcept;
    PerfRing& operator=(PerfRing&& other) noexcept;

    // What has come: type (PERF_RECORD_*) and what follows the header.
    using Record = std::function<void(std::uint32_t type, std::span<const std::byte> body)>;
    void drain(const Record& record);
    // Until there is something, but not longer than that.
    void wait(std::chrono::milliseconds most) const;
    void enable() const;
    void disable() const;
    // Its records come into that ring instead; both on the same processor.
    Result<> join(const PerfRing& other) const;
    [[nodiscard]] int file() const { return file_; }

  private:
    PerfRing(int file, std::span<std::byte> memory) : file_(file), memory_(memory) {}
    int file_;
    std::span<std::byte> memory_;  // a page of the kernel's, then the data; empty without a ring
};

// What `open` makes for each processor of this machine; one that is offline has none (kNotFound).
template <typename Open>
auto open_on_each_processor(Open open)
    -> Result<std::vector<typename std::invoke_result_t<Open, int>::value_type>> {
    std::vector<typename std::invoke_result_t<Open, int>::value_type> all;
    for (long processor = 0; processor < ::sysconf(_SC_NPROCESSORS_CONF); ++processor) {
        auto one = open(static_cast<int>(processor));
        if (!one && one.error().code != ErrorCode::kNotFound) return std::unexpected(one.error());
        if (one) all.push_back(*std::move(one));
    }
    return all;
}

// Of one trace event, each time a thread raises it: `event` is the id that tracefs gives it.
perf_event_attr trace_event(std::uint64_t event);
// The raw data of a record of such an event; empty when it is no such record.
std::span<const std::byte> raw_data(std::uint32_t type, std::span<const std::byte> body);

}  // namespace memtide::agent
