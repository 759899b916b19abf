// The parts of memtide-tiering-load: what it claims to know about itself.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/tiering/distribution.h"
#include "tests/bench/tiering/placement.h"
#include "tests/bench/tiering/proc.h"
#include "tests/bench/tiering/stalls.h"
#include "tests/bench/tiering/workers.h"

namespace memtide::bench {
namespace {

Shape shape_of(Pattern pattern) {
    Shape shape;
    shape.pattern = pattern;
    shape.pages = 200;
    shape.hot_pages = 20;
    return shape;
}

class EveryPattern : public testing::TestWithParam<Pattern> {};

TEST_P(EveryPattern, AccessesPagesAsOftenAsItSays) {
    for (const unsigned phase : {0U, 3U}) {
        const Distribution distribution(shape_of(GetParam()), phase);
        Random random(1);
        std::size_t position = 0;
        constexpr int kAccesses = 400'000;
        std::vector<double> seen(200);
        for (int i = 0; i < kAccesses; ++i) seen.at(distribution.pick(random, position)) += 1.0 / kAccesses;
        double sum = 0;
        for (std::size_t page = 0; page < seen.size(); ++page) {
            EXPECT_NEAR(seen[page], distribution.probability(page), 0.002) << page;
            sum += distribution.probability(page);
        }
        EXPECT_NEAR(sum, 1, 1e-9);
        std::vector<int> nodes(200);
        double on_node = 0;
        for (std::size_t page = 0; page < 200; page += 3) {
            nodes[page] = 1;
            on_node += distribution.probability(page);
        }
        EXPECT_NEAR(distribution.hit(nodes, 1), on_node, 1e-9);
        EXPECT_NEAR(distribution.hit(nodes, 0), 1 - on_node, 1e-9);
        EXPECT_NEAR(distribution.best_hit(200), 1, 1e-9);
    }
}

INSTANTIATE_TEST_SUITE_P(All, EveryPattern,
                         testing::Values(Pattern::kGups, Pattern::kZipf, Pattern::kUniform, Pattern::kScan,
                                         Pattern::kStrewn));

TEST(Distribution, EachHugePageHasSomeOfWhatIsStrewn) {
    const Shape shape{.pattern = Pattern::kStrewn, .pages = 4 * 512, .hot_pages = 8};
    for (const unsigned phase : {0U, 1U, 300U}) {
        const Distribution distribution(shape, phase);
        for (std::size_t huge = 0; huge < 4; ++huge) {
            int hot = 0;
            for (std::size_t page = 512 * huge; page < 512 * (huge + 1); ++page)
                hot += distribution.probability(page) > 0.01 ? 1 : 0;
            EXPECT_EQ(hot, 2);
        }
    }
}

TEST(Distribution, OracleOfAHotSetThatFits) {
    const Distribution gups(shape_of(Pattern::kGups), 0);
    EXPECT_NEAR(gups.best_hit(50), 0.9 + 0.1 * (50 - 20) / (200 - 20), 1e-9);
    EXPECT_NEAR(gups.best_hit(10), 0.45, 1e-9);
}

// Known from elsewhere: a third of the memory, keys hashed over pages.
TEST(Distribution, OracleOfZipf) {
    Shape shape = shape_of(Pattern::kZipf);
    shape.pages = 90'000;
    EXPECT_NEAR(Distribution(shape, 0).best_hit(30'000), 0.875, 0.02);
    shape.keys_per_page = 16;
    EXPECT_NEAR(Distribution(shape, 0).best_hit(30'000), 0.820, 0.02);
}

TEST(Distribution, HotSetsOfDifferentPhasesDoNotOverlap) {
    std::vector<std::size_t> firsts;
    for (unsigned phase = 0; phase < 10; ++phase) {
        const PageSpan hot = Distribution(shape_of(Pattern::kGups), phase).hot();
        EXPECT_EQ(hot.first % 20, 0U);
        EXPECT_THAT(firsts, testing::Not(testing::Contains(hot.first)));
        firsts.push_back(hot.first);
    }
    EXPECT_EQ(Distribution(shape_of(Pattern::kGups), 10).hot().first, firsts.front());
}

TEST(Stalls, PercentileIsAtMostSevenPercentTooHigh) {
    for (std::uint64_t value = 1; value < (std::uint64_t{1} << 40); value = value * 9 / 8 + 1) {
        const auto longest = StallCounts::longest_in(StallCounts::bucket_of(value));
        EXPECT_GE(longest, value);
        EXPECT_LE(static_cast<double>(longest), static_cast<double>(value) * 1.07);
    }
    StallRecorder recorder;
    for (int i = 0; i < 999; ++i) recorder.add(100);
    recorder.add(1'000'000);
    StallCounts counts;
    recorder.add_to(counts);
    EXPECT_NEAR(static_cast<double>(counts.percentile(0.999)), 100, 7);
    EXPECT_NEAR(static_cast<double>(counts.percentile(1)), 1e6, 7e4);
    EXPECT_EQ(recorder.take_longest(), 1'000'000U);
    EXPECT_EQ(recorder.take_longest(), 0U);
    EXPECT_EQ(StallCounts().percentile(0.5), 0U);
}

TEST(Placement, ZonesTellWhereANodesMemoryIs) {
    const ZoneInfo info = read_zones(R"(Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 1
  pages free     100
        boost    0
        min      5
        low      6
        high     7
        spanned  4095
        present  3998
        managed  3840
  pagesets
    cpu: 0
              count:    1
              high:     999
  start_pfn:           1
Node 0, zone   Normal
  pages free     0
        high     0
        spanned  0
  start_pfn:           0
Node 1, zone    DMA32
  pages free     1000
        high     300
        spanned  50000
  start_pfn:           98304
)");
    ASSERT_EQ(info.spans.size(), 2U);
    EXPECT_EQ(info.spans[0].node, 0);
    EXPECT_EQ(info.spans[0].last, 4096U);
    EXPECT_EQ(info.spans[1].node, 1);
    EXPECT_EQ(info.spans[1].first, 98304U);
    EXPECT_EQ(info.free_pages.at(0), 93U);
    EXPECT_EQ(info.free_pages.at(1), 700U);
}

TEST(Placement, MoveThatComesBackWithinAMinuteIsUndone) {
    MoveCounter moves;
    moves.look({0, 0, 1, -1}, 0);
    moves.look({1, 1, 1, 0}, 10);  // the first touch of a page is no move
    EXPECT_EQ(moves.moved(), 2U);
    EXPECT_EQ(moves.undone(), 0U);
    moves.look({0, 1, 1, 0}, 60);
    EXPECT_EQ(moves.undone(), 1U);
    moves.look({0, 0, 1, 0}, 80);
    EXPECT_EQ(moves.moved(), 4U);
    EXPECT_EQ(moves.undone(), 1U);
}

TEST(Proc, CountersOfMovesAndCostOfAProcess) {
    const auto counters =
        migration_counters("nr_free_pages 1\npgmigrate_success 12\nnuma_hit x\nnuma_pages_migrated 3");
    EXPECT_EQ(counters,
              (std::map<std::string, std::uint64_t>{{"pgmigrate_success", 12}, {"numa_pages_migrated", 3}}));
    const auto cost = process_cost(
        "1 (a) b) S 0 1 1 0 -1 4194560 100 0 0 0 150 50 7 8 20 0 1 0 33 99999 25 18446744073709551615", 100,
        4096);
    ASSERT_TRUE(cost);
    EXPECT_DOUBLE_EQ(cost->cpu_seconds, 2);
    EXPECT_EQ(cost->resident_bytes, 25U * 4096);
    EXPECT_FALSE(process_cost("", 100, 4096));
    EXPECT_FALSE(process_cost("1 (short) S 0", 100, 4096));
}

TEST(Workers, MissAnUpdateThatWasLostAndAPageThatIsAnother) {
    auto mapping = Mapping::make(64, false);
    ASSERT_TRUE(mapping) << mapping.error().message;
    Workers::name_pages(*mapping, {0, 64});
    Shape shape = shape_of(Pattern::kUniform);
    shape.pages = 64;
    const Distribution distribution(shape, 0);
    Workers workers(*mapping, 2, false);
    workers.start(distribution);
    while (workers.accesses() < 10'000) std::this_thread::yield();
    workers.stop();
    EXPECT_EQ(workers.check(), "");
    mapping->page(5)[8] = mapping->page(5)[8] - 1;
    EXPECT_THAT(workers.check(), testing::HasSubstr("updates"));
    mapping->page(6)[0] = mapping->page(7)[0];
    EXPECT_THAT(workers.check(), testing::HasSubstr("page 6"));
}

}  // namespace
}  // namespace memtide::bench
