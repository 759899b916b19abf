#include "tests/bench/tiering/btree.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/tiering/distribution.h"
#include "tests/bench/tiering/workers.h"

namespace memtide::bench {
namespace {

using testing::HasSubstr;

Mapping mapping_of(std::size_t pages) {
    auto mapping = Mapping::make(pages, false);
    EXPECT_TRUE(mapping) << mapping.error().message;
    return std::move(*mapping);
}

void fill(Btree& tree) {
    while (tree.insert(key_of(tree.records()))) continue;
}

TEST(TieringBtree, FindsWhatWasInsertedAndNothingElse) {
    const Mapping mapping = mapping_of(2000);
    Btree tree(mapping);
    fill(tree);
    EXPECT_GT(tree.records(), 2000 * 3U);
    EXPECT_LE(tree.used_pages(), 2000U);
    EXPECT_GE(tree.levels(), 3U);  // inner nodes were split
    EXPECT_EQ(tree.check({}), "");
    std::set<const Btree::Record*> found;
    for (std::size_t i = 0; i < tree.records(); ++i) {
        const Btree::Record* const record = tree.find(key_of(i));
        ASSERT_NE(record, nullptr) << i;
        EXPECT_EQ(record->key, key_of(i));
        EXPECT_TRUE(found.insert(record).second);
    }
    EXPECT_EQ(tree.find(key_of(tree.records())), nullptr);
    EXPECT_FALSE(tree.insert(key_of(0))) << "it is there";
}

TEST(TieringBtree, KeysInOrderAreNoProblem) {
    const Mapping mapping = mapping_of(3000);
    Btree tree(mapping);
    std::uint64_t key = 1;
    while (tree.insert(key)) ++key;
    EXPECT_EQ(tree.records(), key - 1);
    EXPECT_GE(tree.levels(), 3U);
    EXPECT_EQ(tree.check({}), "");
    for (std::uint64_t known = 1; known < key; ++known) ASSERT_NE(tree.find(known), nullptr) << known;
}

TEST(TieringBtree, PathEndsWhereTheRecordIs) {
    const Mapping mapping = mapping_of(1500);
    Btree tree(mapping);
    fill(tree);
    for (std::size_t i = 0; i < tree.records(); i += 7) {
        const Btree::Path path = tree.path(key_of(i));
        EXPECT_EQ(path.levels, tree.levels());
        const auto* const record = reinterpret_cast<const char*>(tree.find(key_of(i)));
        EXPECT_EQ(static_cast<std::size_t>(record - mapping.start()) / kPageBytes,
                  path.pages[path.levels - 1]);
    }
}

TEST(TieringBtree, LostUpdatesAndWrongRecordsAreFound) {
    const Mapping mapping = mapping_of(64);
    Btree tree(mapping);
    fill(tree);
    EXPECT_TRUE(tree.access(key_of(3), 1, true));
    EXPECT_TRUE(tree.access(key_of(4), 1, false));
    EXPECT_FALSE(tree.access(key_of(tree.records()), 0, true));
    EXPECT_EQ(tree.check({0, 1}), "");
    EXPECT_THAT(tree.check({0, 2}), HasSubstr("updates"));
    tree.find(key_of(5))->name = 7;
    EXPECT_FALSE(tree.access(key_of(5), 0, false));
    EXPECT_THAT(tree.check({0, 1}), HasSubstr("another one's data"));
}

// What the load says of its pages is what lookups do.
TEST(TieringBtree, PagesAreVisitedAsOftenAsCounted) {
    const Mapping mapping = mapping_of(300);
    Btree tree(mapping);
    fill(tree);
    Shape shape;
    shape.pattern = Pattern::kBtree;
    shape.pages = 300;
    const Distribution distribution(shape, 1, tree);
    std::vector<double> visits(300);
    Random random(3);
    std::size_t position = 0;
    constexpr int kLookups = 300'000;
    for (int i = 0; i < kLookups; ++i) {
        const Btree::Path path = tree.path(key_of(distribution.pick(random, position)));
        for (unsigned level = 0; level < path.levels; ++level)
            visits[path.pages[level]] += 1.0 / kLookups / path.levels;
    }
    double sum = 0;
    for (std::size_t page = 0; page < 300; ++page) {
        EXPECT_NEAR(visits[page], distribution.probability(page), 0.002) << page;
        sum += distribution.probability(page);
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_NEAR(distribution.hit(std::vector<int>(300), 0), 1, 1e-9);
    // One page that is fast: the root is in every path.
    EXPECT_NEAR(distribution.best_hit(1), 1.0 / tree.levels(), 1e-9);
}

TEST(TieringBtree, WorkersLookUpAndUpdate) {
    const Mapping mapping = mapping_of(200);
    Btree tree(mapping);
    fill(tree);
    Shape shape;
    shape.pattern = Pattern::kBtree;
    shape.pages = 200;
    const Distribution distribution(shape, 0, tree);
    Workers workers(mapping, 2, false);
    workers.use_tree(tree);
    workers.start(distribution);
    while (workers.accesses() < 10'000) std::this_thread::yield();
    workers.stop();
    EXPECT_EQ(workers.check(), "");
    ++tree.find(key_of(9))->counters[1];
    EXPECT_THAT(workers.check(), HasSubstr("thread 1"));
}

TEST(TieringAliases, DrawByShares) {
    const std::vector<double> shares{0.5, 0, 0.125, 0.3, 0.075};
    const AliasTable table(shares);
    Random random(1);
    std::vector<double> drawn(shares.size());
    for (int i = 0; i < 200'000; ++i) drawn[table.pick(random.next())] += 1.0 / 200'000;
    for (std::size_t i = 0; i < shares.size(); ++i) EXPECT_NEAR(drawn[i], shares[i], 0.005) << i;
    EXPECT_DOUBLE_EQ(best_of(shares, 2), 0.8);
    EXPECT_DOUBLE_EQ(best_of(shares, 9), 1);
}

TEST(TieringAliases, ZipfFavoursTheFewTheMoreTheLargerItsExponent) {
    double before = 0;
    for (const double exponent : {0.7, 0.99, 1.2}) {
        const auto shares = scrambled_zipf(100'000, 100'000, exponent, 0);
        double sum = 0;
        for (const double share : shares) sum += share;
        EXPECT_NEAR(sum, 1, 1e-9);
        const double best = best_of(shares, 1000);
        EXPECT_GT(best, before + 0.1);
        before = best;
    }
    // The most popular of n keys has 1 / (1 + 1/2 + ... + 1/n) of all accesses at exponent 1.
    EXPECT_NEAR(best_of(scrambled_zipf(3, 1'000'000, 1, 0), 1), 1 / (1 + 1.0 / 2 + 1.0 / 3), 1e-9);
}

}  // namespace
}  // namespace memtide::bench
