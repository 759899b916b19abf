#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/bench/tiering/alias_table.h"
#include "tests/bench/tiering/random.h"

namespace memtide::bench {

enum class Pattern {
    kGups,     // a share of accesses at random within the hot set, the rest at random outside of it
    kZipf,     // keys of Zipf popularity, hashed over all pages
    kUniform,  // all pages alike
    kScan,     // the hot set in order, again and again; nothing else
    kStrewn,   // as gups, with the pages of the hot set equally far apart, so that all huge pages have some
    kBtree,    // lookups of records of Zipf popularity in a B-tree
};

struct Shape {
    Pattern pattern = Pattern::kGups;
    std::size_t pages = 0;       // at most 2^32
    std::size_t hot_pages = 0;   // gups, scan and strewn: at least 1, at most `pages`
    double hot_share = 0.9;      // gups and strewn
    double exponent = 0.99;      // zipf and btree
    unsigned keys_per_page = 4;  // zipf
};

struct PageSpan {
    std::size_t first = 0;
    std::size_t count = 0;
};

class Btree;

// How often each page is accessed during one phase of a load. Pages are numbered from 0. From one phase to
// the next the hot set is somewhere else: hot sets take turns at being all `hot_pages`-sized pieces of
// memory, in an order that looks random and is always the same; Zipf keys are hashed anew. Read-only once
// made.
class Distribution {
  public:
    // Any pattern but kBtree.
    Distribution(const Shape& shape, unsigned phase);
    // Lookups of the records of a tree, which all have keys key_of(0), key_of(1), ... Each visits one page at
    // every level; how often pages are visited is counted along the paths of all records.
    Distribution(const Shape& shape, unsigned phase, const Btree& tree);

    [[nodiscard]] double probability(std::size_t page) const;
    // The page of the next access, or with a tree the number of its key. `position` counts the accesses of a
    // thread that scans.
    std::size_t pick(Random& random, std::size_t& position) const {
        if (shape_.pattern == Pattern::kScan) return hot_.first + position++ % hot_.count;
        const std::uint64_t bits = random.next();
        const auto high = static_cast<std::uint32_t>(bits >> 32);
        const auto low = static_cast<std::uint32_t>(bits);
        if (shape_.pattern == Pattern::kUniform) return Random::scale(low, shape_.pages);
        if (picks_.size() > 0) return picks_.pick(bits);
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
    Shape shape_;
    PageSpan hot_;
    std::uint32_t hot_threshold_ = 0;
    std::vector<double> popularity_;  // zipf, strewn and btree: by page
    AliasTable picks_;                // of pages, or of records of a tree
};

}  // namespace memtide::bench
