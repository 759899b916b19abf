#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

// What a process says of its own memory: hot, cold, pinned. libmemtide collects it, the tiering agent obeys.
namespace memtide {

enum class Hint : std::uint8_t {
    kNone = 0,
    kHot = 1,   // wanted in the fastest tier, as though touched all the time
    kCold = 2,  // the first to leave it, and never brought back
    kPin = 3,   // as hot, and once there it stays
};
std::string_view to_string(Hint hint);  // "none", "hot", "cold", "pin"

// Pages of 4 KiB, [first, end).
struct HintRange {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    Hint hint = Hint::kNone;

    friend bool operator==(const HintRange&, const HintRange&) = default;
};

// Ascending, without overlaps; neighbours differ. Not thread safe.
class HintRanges {
  public:
    // What was said of these pages before is forgotten. kNone says nothing of them. False, and nothing is
    // changed, when it would take more than `most` ranges.
    bool set(HintRange range, std::size_t most = SIZE_MAX);
    void clear() { ranges_.clear(); }

    [[nodiscard]] std::span<const HintRange> ranges() const { return ranges_; }
    [[nodiscard]] bool is_empty() const { return ranges_.empty(); }
    // How many pages have that hint.
    [[nodiscard]] std::uint64_t pages_of(Hint hint) const;

    friend bool operator==(const HintRanges&, const HintRanges&) = default;

  private:
    std::vector<HintRange> ranges_;
};

// Asks for the hints of units of memory one after the other, by ascending address: a step a unit.
class HintCursor {
  public:
    explicit HintCursor(std::span<const HintRange> ranges) : ranges_(ranges) {}
    // Of `pages` pages that move as one: pinned or hot when any of them is, cold when all of them are.
    [[nodiscard]] Hint of(std::uint64_t first, std::uint64_t pages);

  private:
    std::span<const HintRange> ranges_;  // those before the last unit are off its front
};

}  // namespace memtide
