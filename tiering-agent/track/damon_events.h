#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/error.h"

// What the kernel's data access monitor tells through its trace event damon:damon_aggregated
// (Documentation/admin-guide/mm/damon/usage.rst, "Tracepoint for Monitoring Results").
namespace memtide::agent {

// In how many of the samples of an aggregation a page of [begin, end), one at random each time, was accessed.
// Page numbers.
struct DamonRegion {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t accesses = 0;
    friend bool operator==(const DamonRegion&, const DamonRegion&) = default;
};

// One event.
struct DamonEvent {
    DamonRegion region;
    std::uint32_t regions_in_all = 0;  // of its aggregation
};

// Where the fields of an event are in its raw data.
class DamonEventLayout {
  public:
    // From the event's `format` file in tracefs. kProtocol when a field is missing or of another size.
    static Result<DamonEventLayout> parse(std::string_view format);
    // kProtocol when the data is too short.
    [[nodiscard]] Result<DamonEvent> decode(std::span<const std::byte> raw) const;

  private:
    std::size_t start_ = 0;
    std::size_t end_ = 0;
    std::size_t accesses_ = 0;
    std::size_t regions_ = 0;
};

// Puts the events of one kdamond with one target together to aggregations. A pure state machine.
class DamonAggregation {
  public:
    // Regions of an aggregation come by ascending address; events that were lost or came before anybody
    // listened make it incomplete (clear() it then), and the next one is waited for.
    void add(const DamonEvent& event);
    void clear() { regions_.clear(), expected_ = 0; }

    // Once complete, further events are ignored.
    [[nodiscard]] bool is_complete() const { return expected_ > 0 && regions_.size() == expected_; }
    [[nodiscard]] const std::vector<DamonRegion>& regions() const { return regions_; }

  private:
    std::vector<DamonRegion> regions_;
    std::size_t expected_ = 0;
};

// The region of each of many pages, asked for by ascending page number. `regions` must outlive it.
class RegionCursor {
  public:
    explicit RegionCursor(std::span<const DamonRegion> regions) : regions_(regions) {}
    // Null: in none.
    const DamonRegion* find(std::uint64_t page);

  private:
    std::span<const DamonRegion> regions_;
    std::size_t at_ = 0;
};

}  // namespace memtide::agent
