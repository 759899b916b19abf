#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace memtide::bench {

// Counts of durations by size, as HDR histograms have them: 16 steps for each power of two of nanoseconds, so
// that a percentile is at most 7 % too high.
struct StallCounts {
    static constexpr std::size_t kSteps = 16;
    static constexpr std::size_t kBuckets = 44 * kSteps;  // up to some two hours

    std::array<std::uint64_t, kBuckets> counts{};

    static std::size_t bucket_of(std::uint64_t nanoseconds) {
        if (nanoseconds < kSteps) return static_cast<std::size_t>(nanoseconds);
        const auto exponent = static_cast<unsigned>(std::bit_width(nanoseconds)) - 5;
        return std::min<std::size_t>(kBuckets - 1,
                                     (exponent + 1) * kSteps + (nanoseconds >> exponent) - kSteps);
    }
    // The longest duration that is counted there.
    static std::uint64_t longest_in(std::size_t bucket) {
        if (bucket < kSteps) return bucket;
        const std::size_t exponent = bucket / kSteps - 1;
        return ((bucket % kSteps + kSteps + 1) << exponent) - 1;
    }

    // Nanoseconds that `share` of all durations do not exceed; 0 when there are none.
    [[nodiscard]] std::uint64_t percentile(double share) const {
        std::uint64_t all = 0;
        for (const std::uint64_t count : counts) all += count;
        if (all == 0) return 0;
        const double wanted = share * static_cast<double>(all);
        std::uint64_t seen = 0;
        std::size_t bucket = 0;
        for (; bucket + 1 < kBuckets; ++bucket) {
            seen += counts[bucket];
            if (static_cast<double>(seen) >= wanted) break;
        }
        return longest_in(bucket);
    }
};

// What one thread measures and another one reads: one writer, one reader, without locks.
class StallRecorder {
  public:
    void add(std::uint64_t nanoseconds) {
        auto& count = counts_[StallCounts::bucket_of(nanoseconds)];
        count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (nanoseconds > longest_.load(std::memory_order_relaxed))
            longest_.store(nanoseconds, std::memory_order_relaxed);
    }
    // Adds all that has been counted so far.
    void add_to(StallCounts& sum) const {
        for (std::size_t i = 0; i < counts_.size(); ++i)
            sum.counts[i] += counts_[i].load(std::memory_order_relaxed);
    }
    // The longest one since the last call.
    std::uint64_t take_longest() { return longest_.exchange(0, std::memory_order_relaxed); }

  private:
    std::array<std::atomic<std::uint64_t>, StallCounts::kBuckets> counts_{};
    std::atomic<std::uint64_t> longest_{0};
};

}  // namespace memtide::bench
