#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace memtide::emul {

// Bytes [begin, end) of a device, never empty inside a RangeSet.
struct ByteRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    [[nodiscard]] std::uint64_t size() const { return end - begin; }
    friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// A set of bytes, as ranges that neither overlap nor touch, ascending. Plain data; not thread safe.
class RangeSet {
  public:
    RangeSet() = default;
    explicit RangeSet(std::span<const ByteRange> ranges) {
        for (const ByteRange& range : ranges) add(range);
    }

    void add(ByteRange range);
    void remove(ByteRange range);
    void clear() { ranges_.clear(); }

    [[nodiscard]] bool empty() const { return ranges_.empty(); }
    [[nodiscard]] std::uint64_t size() const;
    [[nodiscard]] bool contains(ByteRange range) const;
    [[nodiscard]] bool overlaps(ByteRange range) const;
    [[nodiscard]] const std::vector<ByteRange>& ranges() const { return ranges_; }
    // What of the set is in `window`.
    [[nodiscard]] RangeSet within(ByteRange window) const;

    // `size` bytes of the set in as few pieces as possible, ascending; nothing when it is smaller.
    [[nodiscard]] std::optional<std::vector<ByteRange>> fewest(std::uint64_t size) const;
    // In one piece, out of the smallest range that has it; the lowest of several.
    [[nodiscard]] std::optional<ByteRange> tightest(std::uint64_t size) const;

    friend bool operator==(const RangeSet&, const RangeSet&) = default;

  private:
    std::vector<ByteRange> ranges_;
};

}  // namespace memtide::emul
