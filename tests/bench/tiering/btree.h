#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/tiering/placement.h"

namespace memtide::bench {

// A B+ tree of records of 512 bytes, as databases have them: nodes are pages of 4 KiB, leaves hold up to 7
// records, inner nodes up to 339 keys; the order of pages in memory is that in which nodes were split off.
// All of it is in one mapping. Records are inserted and found, never removed. One thread inserts; then any
// number may look up at the same time.
class Btree {
  public:
    static constexpr std::size_t kRecordsOfLeaf = 7;
    static constexpr std::size_t kKeysOfInner = 339;
    static constexpr unsigned kMostLevels = 8;

    // A record names itself, and has a counter for each thread that updates it.
    struct Record {
        std::uint64_t key;
        std::uint64_t name;
        std::array<std::uint64_t, 62> counters;
    };

    // An empty tree in memory that nothing else uses. It has to outlive the tree.
    explicit Btree(const Mapping& mapping);

    // False when there is no page left for nodes that have to be split, and when the key is there.
    bool insert(std::uint64_t key);

    // Pages from the root to the leaf in which the key is, or would be.
    struct Path {
        std::array<std::uint32_t, kMostLevels> pages;
        unsigned levels = 0;
    };
    [[nodiscard]] Path path(std::uint64_t key) const;

    // Nothing when it is not there.
    [[nodiscard]] Record* find(std::uint64_t key) const;

    // A lookup, and an update when asked for: false when the record is not there or not what it was. Its
    // counter wraps around.
    bool access(std::uint64_t key, unsigned thread, bool update) const;

    [[nodiscard]] unsigned levels() const { return levels_; }
    [[nodiscard]] std::size_t records() const { return records_; }
    [[nodiscard]] std::size_t used_pages() const { return used_; }

    // Goes through all leaves in the order of keys: what is wrong with them (order, names, number), or that
    // the counters of a thread do not sum up to `updates[thread]`; nothing when all is well.
    [[nodiscard]] std::string check(const std::vector<std::uint64_t>& updates) const;

  private:
    struct Leaf;
    struct Inner;
    [[nodiscard]] Leaf& leaf(std::uint32_t page) const;
    [[nodiscard]] Inner& inner(std::uint32_t page) const;
    [[nodiscard]] Leaf& leaf_of(std::uint64_t key) const;
    void split_inner(const Path& path, unsigned level, std::uint64_t key, std::uint32_t right);

    const Mapping& mapping_;
    std::uint32_t root_ = 0;
    std::uint32_t used_ = 1;
    unsigned levels_ = 1;
    std::size_t records_ = 0;
};

// The key with a number: keys in the order of their numbers are in random order (an odd factor permutes
// 64-bit words).
inline std::uint64_t key_of(std::size_t number) { return std::uint64_t{number + 1} * 0x9e3779b97f4a7c15; }

}  // namespace memtide::bench
