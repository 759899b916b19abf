#include "tests/bench/tiering/btree.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

namespace memtide::bench {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

std::uint64_t name_of_record(std::uint64_t key) { return key ^ 0x6d656d7469646500; }

}  // namespace

struct Btree::Leaf {
    std::uint32_t count;
    std::uint32_t next;  // in the order of keys
    std::array<std::uint64_t, 63> unused;
    std::array<Record, kRecordsOfLeaf> records;
};

// The child left of a key has smaller ones only, that at its right has it and larger ones.
struct Btree::Inner {
    std::uint32_t count;  // of keys
    std::array<std::uint32_t, kKeysOfInner + 1> children;
    std::array<std::uint64_t, kKeysOfInner> keys;

    [[nodiscard]] std::size_t child_of(std::uint64_t key) const {
        return static_cast<std::size_t>(std::upper_bound(keys.begin(), keys.begin() + count, key) -
                                        keys.begin());
    }
    void add(std::uint64_t key, std::uint32_t right) {
        const std::size_t at = child_of(key);
        std::copy_backward(keys.begin() + at, keys.begin() + count, keys.begin() + count + 1);
        std::copy_backward(children.begin() + at + 1, children.begin() + count + 1,
                           children.begin() + count + 2);
        keys[at] = key;
        children[at + 1] = right;
        ++count;
    }
};

Btree::Leaf& Btree::leaf(std::uint32_t page) const {
    static_assert(sizeof(Leaf) == kPageBytes);
    return *reinterpret_cast<Leaf*>(mapping_.start() + std::size_t{page} * kPageBytes);
}

Btree::Inner& Btree::inner(std::uint32_t page) const {
    static_assert(sizeof(Inner) <= kPageBytes);
    return *reinterpret_cast<Inner*>(mapping_.start() + std::size_t{page} * kPageBytes);
}

Btree::Btree(const Mapping& mapping) : mapping_(mapping) {
    leaf(root_).count = 0;
    leaf(root_).next = kNone;
}

Btree::Path Btree::path(std::uint64_t key) const {
    Path path;
    std::uint32_t page = root_;
    for (unsigned level = 1; level < levels_; ++level) {
        path.pages[path.levels++] = page;
        const Inner& node = inner(page);
        page = node.children[node.child_of(key)];
    }
    path.pages[path.levels++] = page;
    return path;
}

Btree::Leaf& Btree::leaf_of(std::uint64_t key) const {
    std::uint32_t page = root_;
    for (unsigned level = 1; level < levels_; ++level) {
        const Inner& node = inner(page);
        page = node.children[node.child_of(key)];
    }
    return leaf(page);
}

bool Btree::insert(std::uint64_t key) {
    const Path way = path(key);
    if (used_ + way.levels + 1 > mapping_.pages() || levels_ == kMostLevels) return false;
    Leaf* into = &leaf(way.pages[way.levels - 1]);
    const auto place = [key](Leaf& node) {
        return std::lower_bound(
            node.records.begin(), node.records.begin() + node.count, key,
            [](const Record& record, std::uint64_t wanted) { return record.key < wanted; });
    };
    if (const auto at = place(*into); at != into->records.begin() + into->count && at->key == key)
        return false;
    if (into->count == kRecordsOfLeaf) {
        const std::uint32_t page = used_++;
        Leaf& right = leaf(page);
        constexpr std::size_t kKept = (kRecordsOfLeaf + 1) / 2;
        std::copy(into->records.begin() + kKept, into->records.end(), right.records.begin());
        right.count = kRecordsOfLeaf - kKept;
        right.next = into->next;
        into->count = kKept;
        into->next = page;
        const std::uint64_t border = right.records[0].key;
        split_inner(way, way.levels - 1, border, page);
        if (key >= border) into = &right;
    }
    const auto at = place(*into);
    std::copy_backward(at, into->records.begin() + into->count, into->records.begin() + into->count + 1);
    *at = {.key = key, .name = name_of_record(key), .counters = {}};
    ++into->count;
    ++records_;
    return true;
}

// The node at `level` of the path was split: `right` has what is at or above `key`.
void Btree::split_inner(const Path& path, unsigned level, std::uint64_t key, std::uint32_t right) {
    for (; level > 0; --level) {
        Inner& node = inner(path.pages[level - 1]);
        if (node.count < kKeysOfInner) return node.add(key, right);
        constexpr std::size_t kKept = kKeysOfInner / 2;
        const std::uint32_t page = used_++;
        Inner& upper = inner(page);
        const std::uint64_t border = node.keys[kKept];
        upper.count = kKeysOfInner - kKept - 1;
        std::copy(node.keys.begin() + kKept + 1, node.keys.end(), upper.keys.begin());
        std::copy(node.children.begin() + kKept + 1, node.children.end(), upper.children.begin());
        node.count = kKept;
        (key < border ? node : upper).add(key, right);
        key = border;
        right = page;
    }
    const std::uint32_t page = used_++;
    Inner& above = inner(page);
    above.count = 1;
    above.keys[0] = key;
    above.children[0] = root_;
    above.children[1] = right;
    root_ = page;
    ++levels_;
}

Btree::Record* Btree::find(std::uint64_t key) const {
    Leaf& node = leaf_of(key);
    for (std::size_t i = 0; i < node.count; ++i)
        if (node.records[i].key == key) return &node.records[i];
    return nullptr;
}

bool Btree::access(std::uint64_t key, unsigned thread, bool update) const {
    Record* const record = find(key);
    if (record == nullptr || record->name != name_of_record(key)) return false;
    if (update) ++record->counters[thread];
    return true;
}

std::string Btree::check(const std::vector<std::uint64_t>& updates) const {
    std::vector<std::uint64_t> sums(updates.size());
    std::size_t seen = 0;
    std::uint64_t last = 0;
    std::uint32_t page = root_;
    for (unsigned level = 1; level < levels_; ++level) page = inner(page).children[0];
    for (; page != kNone && seen <= records_; page = leaf(page).next) {
        const Leaf& node = leaf(page);
        for (std::size_t i = 0; i < std::min<std::size_t>(node.count, kRecordsOfLeaf); ++i, ++seen) {
            const Record& record = node.records[i];
            if (record.name != name_of_record(record.key) || (seen > 0 && record.key <= last))
                return fmt::format("page {} of the tree has another one's data", page);
            last = record.key;
            for (std::size_t thread = 0; thread < sums.size(); ++thread)
                sums[thread] += record.counters[thread];
        }
    }
    if (seen != records_) return fmt::format("the tree has {} records of {}", seen, records_);
    for (std::size_t thread = 0; thread < sums.size(); ++thread)
        if (sums[thread] != updates[thread])
            return fmt::format("thread {} made {} updates, and its records have {} of them", thread,
                               updates[thread], sums[thread]);
    return {};
}

}  // namespace memtide::bench
