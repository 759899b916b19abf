#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace memtide::bench {

inline constexpr std::size_t kPageBytes = 4096;

// Anonymous private memory of whole 2 MiB, aligned to that, unmapped at the end. Nothing is allocated yet.
class Mapping {
  public:
    // `huge`: advised to be huge pages, else advised against.
    static Result<Mapping> make(std::size_t pages, bool huge);
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&&) = delete;
    ~Mapping();

    [[nodiscard]] std::size_t pages() const { return pages_; }
    [[nodiscard]] volatile std::uint64_t* page(std::size_t number) const {
        return reinterpret_cast<volatile std::uint64_t*>(start_ + number * kPageBytes);
    }
    [[nodiscard]] char* start() const { return start_; }

  private:
    Mapping(char* reserved, std::size_t reserved_bytes, char* start, std::size_t pages)
        : reserved_(reserved), reserved_bytes_(reserved_bytes), start_(start), pages_(pages) {}
    char* reserved_;
    std::size_t reserved_bytes_;
    char* start_;
    std::size_t pages_;
};

// While it lives, this thread's first touches go to one node when it has room, then to any other (a task
// policy: the mapping itself keeps none, so that whoever moves its pages later is free to).
class PreferNode {
  public:
    explicit PreferNode(int node);
    ~PreferNode();
    PreferNode(const PreferNode&) = delete;
    PreferNode& operator=(const PreferNode&) = delete;
};

// kConflict when /proc/self/numa_maps shows a memory policy for the mapping.
Result<> check_no_policy(const Mapping& mapping);

// Physical page frames that are a node's memory: [first, last).
struct FrameSpan {
    int node = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
};
// What /proc/zoneinfo (its text) says of the nodes.
struct ZoneInfo {
    std::vector<FrameSpan> spans;  // sorted by frame; zones that have no memory left out
    // Free pages by node, less those that its zones keep back (their high watermarks, to which the kernel's
    // reclaim works).
    std::map<int, std::size_t> free_pages;
};
ZoneInfo read_zones(std::string_view zoneinfo);

// Finds the node of each page of a mapping; negative for one that is not there. Root gets it from
// /proc/self/pagemap (page frames) and the nodes' zones, which costs a tenth of move_pages(2); it is trusted
// when both agree at first. Others, and where nodes' memory is interleaved, get it from move_pages.
class NodeFinder {
  public:
    explicit NodeFinder(const Mapping& mapping);
    ~NodeFinder();
    NodeFinder(const NodeFinder&) = delete;
    NodeFinder& operator=(const NodeFinder&) = delete;

    Result<> find(std::vector<int>& nodes);
    // "pagemap" or "move_pages"; known after the first find().
    [[nodiscard]] const char* method() const { return by_frames_ ? "pagemap" : "move_pages"; }

  private:
    Result<> ask(std::vector<int>& nodes) const;
    Result<> by_frames(std::vector<int>& nodes);

    const Mapping& mapping_;
    std::vector<FrameSpan> spans_;
    std::vector<std::uint64_t> entries_;
    int pagemap_ = -1;
    bool by_frames_ = false;
    bool compared_ = false;
};

// Pages of a node that an oracle could use beside those in use, as ZoneInfo::free_pages.
Result<std::size_t> free_pages(int node);

// Bytes a second at which one thread copies base pages between two nodes by move_pages(2): the best of three
// round trips of 16 MiB. Both nodes need that much room.
Result<double> measure_copy(int from, int to);

// Where pages have been: counts moves between two looks, and those that were undone within a minute.
class MoveCounter {
  public:
    void look(const std::vector<int>& nodes, double seconds);
    [[nodiscard]] std::uint64_t moved() const { return moved_; }
    [[nodiscard]] std::uint64_t undone() const { return undone_; }

  private:
    std::vector<int> last_;
    std::vector<double> moved_at_;  // seconds; long ago for pages that never moved
    std::uint64_t moved_ = 0;
    std::uint64_t undone_ = 0;
};

}  // namespace memtide::bench
