#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memtide::bench {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    // Below `limit`, of 32 random bits.
    static std::size_t scale(std::uint32_t bits, std::size_t limit) {
        return static_cast<std::size_t>((std::uint64_t{bits} * limit) >> 32);
    }

  private:
    std::uint64_t state_;
};

enum class Pattern {
    kGups,     // a share of accesses at random within the hot set, the rest at random outside of it
    kZipf,     // keys of Zipf popularity, hashed over all pages
    kUniform,  // all pages alike
    kScan,     // the hot set in order, again and again; nothing else
};

struct Shape {
    Pattern pattern = Pattern::kGups;
    std::size_t pages = 0;       // at most 2^32
    std::size_t hot_pages = 0;   // gups and scan: at least 1, at most `pages`
    double hot_share = 0.9;      // gups
    double exponent = 0.99;      // zipf
    unsigned keys_per_page = 4;  // zipf
};

struct PageSpan {
    std::size_t first = 0;
    std::size_t count = 0;
};

// How often each page is accessed during one phase of a load. Pages are numbered from 0. From one phase to
// the next the hot set is somewhere else: hot sets take turns at being all `hot_pages`-sized pieces of
// memory, in an order that looks random and is always the same; Zipf keys are hashed anew. Read-only once
// made.
class Distribution {
  public:
    Distribution(const Shape& shape, unsigned phase);

    [[nodiscard]] double probability(std::size_t page) const;
    // The page of the next access. `position` counts the accesses of a thread that scans.
    std::size_t pick(Random& random, std::size_t& position) const {
        if (shape_.pattern == Pattern::kScan) return hot_.first + position++ % hot_.count;
        const std::uint64_t bits = random.next();
        const auto high = static_cast<std::uint32_t>(bits >> 32);
        const auto low = static_cast<std::uint32_t>(bits);
        if (shape_.pattern == Pattern::kUniform) return Random::scale(low, shape_.pages);
        if (shape_.pattern == Pattern::kZipf) {
            const std::size_t slot = Random::scale(high, shape_.pages);
            return low < aliases_[slot].threshold ? slot : aliases_[slot].other;
        }
        if (high < hot_threshold_) return hot_.first + Random::scale(low, hot_.count);
        const std::size_t cold = Random::scale(low, shape_.pages - hot_.count);
        return cold < hot_.first ? cold : cold + hot_.count;
    }
    // Share of accesses to pages that are on `node`; `nodes` has that of each page.
    [[nodiscard]] double hit(const std::vector<int>& nodes, int node) const;
    // Share of accesses that hit `fast_pages` pages when those are the most popular ones.
    [[nodiscard]] double best_hit(std::size_t fast_pages) const;
    // Empty but for gups and scan.
    [[nodiscard]] PageSpan hot() const { return hot_; }

  private:
    struct Alias {  // Walker's alias method, with 32-bit probabilities
        std::uint32_t threshold;
        std::uint32_t other;
    };
    void make_aliases();

    Shape shape_;
    PageSpan hot_;
    std::uint32_t hot_threshold_ = 0;
    std::vector<double> popularity_;  // zipf: by page
    std::vector<Alias> aliases_;
};

}  // namespace memtide::bench
