// No processor here samples memory accesses. What the kernel says of those that do is made up as Intel's and
// AMD's have it; the sampling itself is tried with an event that has the same records: page faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"
#include "tests/tiering-agent/track/toucher.h"
#include "tiering-agent/track/memory_events.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

using testing::HasSubstr;

TEST(TermFormat, IsReadAndAnythingElseIsNone) {
    const auto split = TermFormat::parse("config1:0-7,32-35");
    ASSERT_TRUE(split);
    EXPECT_EQ(split->word, 1U);
    EXPECT_EQ(split->bits, (std::vector<std::pair<unsigned, unsigned>>{{0, 7}, {32, 35}}));
    EXPECT_EQ(TermFormat::parse("config:21")->bits.front(), std::pair(21U, 21U));
    for (const char* const text :
         {"", "config", "config:", "config3:0-7", "config:8-1", "config:0-64", "config:a"})
        EXPECT_FALSE(TermFormat::parse(text)) << text;
}

TEST(EventTerms, FillTheBitsThatTheFormatSays) {
    const std::map<std::string, TermFormat, std::less<>> formats{
        {"event", *TermFormat::parse("config:0-7,32-35")},
        {"umask", *TermFormat::parse("config:8-15")},
        {"edge", *TermFormat::parse("config:18")},
        {"ldlat", *TermFormat::parse("config1:0-15")},
        {"all", *TermFormat::parse("config2:0-63")}};
    perf_event_attr attributes{};
    ASSERT_TRUE(
        apply_terms("event=0x3cd,umask=0x1,edge,ldlat=30,all=0xffffffffffffffff", formats, attributes));
    EXPECT_EQ(attributes.config, 0x3'0004'01cdULL);
    EXPECT_EQ(attributes.config1, 30U);
    EXPECT_EQ(attributes.config2, UINT64_MAX);
    for (const char* const terms :
         {"event=0x1000", "ldlat=65536", "nothing=1", "event=", "event=0xg", "event=1,,"})
        EXPECT_EQ(apply_terms(terms, formats, attributes).error().code, ErrorCode::kProtocol) << terms;
}

class MemoryEvents : public testing::Test {
  protected:
    void put(const std::string& path, const std::string& text) const {
        tree_.put("sys/bus/event_source/devices/" + path, text + "\n");
    }
    FakeTree tree_;
};

TEST_F(MemoryEvents, OfIntelAreLoadsAndStores) {
    put("cpu/type", "4");
    put("cpu/format/event", "config:0-7");
    put("cpu/format/umask", "config:8-15");
    put("cpu/format/ldlat", "config1:0-15");
    put("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3");
    put("cpu/events/mem-stores", "event=0xd0,umask=0x82");
    const auto events = find_memory_events(tree_.files(), 500);
    ASSERT_TRUE(events) << events.error().message;
    ASSERT_EQ(events->size(), 2U);
    EXPECT_EQ(events->front().attributes.type, 4U);
    EXPECT_EQ(events->front().attributes.config, 0x1cdU);
    EXPECT_EQ(events->front().attributes.config1, 3U);
    EXPECT_EQ(events->front().attributes.sample_freq, 500U);
    EXPECT_EQ(events->front().attributes.precise_ip, 2U);
    EXPECT_FALSE(events->front().leader);
    EXPECT_EQ(events->back().attributes.config, 0x82d0U);
}

// From Sapphire Rapids on.
TEST_F(MemoryEvents, LoadsThatNeedALeaderHaveIt) {
    put("cpu/type", "4");
    put("cpu/format/event", "config:0-7");
    put("cpu/events/mem-loads", "event=0xcd");
    put("cpu/events/mem-loads-aux", "event=0x03");
    const auto events = find_memory_events(tree_.files(), 500);
    ASSERT_TRUE(events) << events.error().message;
    ASSERT_TRUE(events->front().leader);
    EXPECT_EQ(events->front().leader->config, 3U);
    EXPECT_EQ(events->front().leader->disabled, 1U);
    EXPECT_EQ(events->front().attributes.disabled, 0U);
}

TEST_F(MemoryEvents, OfAmdAreOperations) {
    put("cpu/type", "4");
    put("cpu/events/cpu-cycles", "event=0x76");
    put("ibs_op/type", "11");
    const auto events = find_memory_events(tree_.files(), 500);
    ASSERT_TRUE(events) << events.error().message;
    EXPECT_EQ(events->front().attributes.type, 11U);
}

TEST_F(MemoryEvents, WithoutAnyItIsSaid) {
    put("cpu/type", "4");
    EXPECT_EQ(find_memory_events(tree_.files(), 500).error().code, ErrorCode::kUnavailable);
    put("cpu/events/mem-loads", "event=many");
    const auto mistake = find_memory_events(tree_.files(), 500);
    EXPECT_EQ(mistake.error().code, ErrorCode::kProtocol);
    EXPECT_THAT(mistake.error().message, HasSubstr("event=many"));
}

TEST(HintFaults, AreThereOnlyWhereTheKernelBalances) {
    FakeTree tree;
    EXPECT_EQ(make_hint_fault_tracker(tree.files()).error().code, ErrorCode::kUnavailable);
    tree.put("proc/sys/kernel/numa_balancing", "0\n");
    const auto off = make_hint_fault_tracker(tree.files());
    EXPECT_EQ(off.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(off.error().message, HasSubstr("kernel.numa_balancing"));
}

TEST(Samples, TellWhichPagesOfWhomWereTouchedInTheWindow) {
    Files files;
    const MemoryEvent faults = page_fault_event();
    auto tracker = make_sample_tracker(files, {faults, faults}, nullptr);  // two into one ring
    if (!tracker) GTEST_SKIP() << tracker.error().message;
    const Toucher one(64);
    const Toucher other(64);
    const auto touched = [&](const Toucher& of) {
        std::vector<std::uint64_t> pages;
        const std::uint64_t begin = of.first_page() << kPageShift;
        const std::vector<VirtualRange> ranges{{begin, begin + (64 << kPageShift)}};
        const auto look = (*tracker)->look(of.pid(), ranges, TierOfNode(64, 0),
                                           [&](std::uint64_t page, std::span<const PageSeen> seen) {
                                               for (const PageSeen& each : seen) {
                                                   if (each.touched > 0)
                                                       pages.push_back(page - of.first_page());
                                                   ++page;
                                               }
                                           });
        EXPECT_TRUE(look) << look.error().message;
        EXPECT_EQ(look ? look->touched_pages : 0, pages.size());
        return pages;
    };
    one.touch(1);
    ASSERT_TRUE((*tracker)->begin(one.pid(), {}));
    ASSERT_TRUE((*tracker)->begin(other.pid(), {}));
    for (const std::uint64_t page : {7, 3, 40}) one.touch(page);
    other.touch(9);
    EXPECT_THAT(touched(one), testing::ElementsAre(3, 7, 40));
    EXPECT_THAT(touched(other), testing::ElementsAre(9));
    one.touch(20);
    ASSERT_TRUE((*tracker)->begin(one.pid(), {}));
    one.touch(21);
    EXPECT_THAT(touched(one), testing::ElementsAre(21)) << "20 was between two windows";
    EXPECT_FALSE((*tracker)->look(other.pid(), {}, {}, [](std::uint64_t, std::span<const PageSeen>) {}));
}

TEST(Samples, OfThisMachineAreFoundOutByTrying) {
    Files files;
    const auto events = try_memory_events(files);
    if (!events) GTEST_SKIP() << events.error().message;
    const auto tracker = make_sample_tracker(files, *events, nullptr);
    ASSERT_TRUE(tracker) << tracker.error().message;
    EXPECT_THAT((*tracker)->sees(), HasSubstr("samples"));
}

}  // namespace
}  // namespace memtide::agent
