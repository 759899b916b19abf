#include "libmemtide/src/tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::library {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KnownTiers : public testing::Test {
  protected:
    KnownTiers() {
        tree_.put_node(
            {.number = 0, .cpus = "0-1", .mebibytes = 1000, .free_mebibytes = 100, .distances = "10 20"});
        tree_.put_node(
            {.number = 1, .cpus = "", .mebibytes = 2000, .free_mebibytes = 500, .distances = "20 10"});
    }
    std::vector<std::string> names(std::string_view wish = {}) {
        std::vector<std::string> names;
        const auto tiers = known_tiers(tree_.files(), wish);
        if (!tiers) return {tiers.error().message};
        for (const agent::Tier& tier : *tiers) names.push_back(tier.name);
        return names;
    }
    agent::FakeTree tree_;
};

TEST_F(KnownTiers, WithoutAnAgentTheyAreAsItWouldFindThem) {
    EXPECT_THAT(names(), ElementsAre("fast", "slow"));
}

TEST_F(KnownTiers, WithOneTheyAreAsItSays) {
    tree_.put("run/memtide/tiers", "# comment\ndram 0\ncxl 1\nlater\n");
    EXPECT_THAT(names(), ElementsAre("dram", "cxl", "later"));
    const auto cxl = find_tier(tree_.files(), {}, "cxl");
    ASSERT_TRUE(cxl.has_value());
    EXPECT_EQ(cxl->nodes, std::vector<int>{1});
    EXPECT_EQ(cxl->capacity, mebibytes(2000));
}

TEST_F(KnownTiers, TheEnvironmentComesFirst) {
    tree_.put("run/memtide/tiers", "dram 0\n");
    EXPECT_THAT(names("a=0;b=1,3-4"), ElementsAre("a", "b"));
    EXPECT_EQ(find_tier(tree_.files(), "a=0;b=1,3-4", "b")->nodes, (std::vector<int>{1, 3, 4}));
    tree_.put("elsewhere", "x 0\n");
    EXPECT_THAT(names("/elsewhere"), ElementsAre("x"));
    EXPECT_THAT(names("/not/there"), ElementsAre(HasSubstr("/not/there")));
}

TEST_F(KnownTiers, WhatIsNoListOfTiersIsSaidSo) {
    EXPECT_THAT(names("a=0-"), ElementsAre(HasSubstr("MEMTIDE_TIERS: \"a\" is to have its nodes behind it")));
    tree_.put("run/memtide/tiers", "dram zero\n");
    EXPECT_THAT(names(), ElementsAre(HasSubstr("/run/memtide/tiers: \"dram\"")));
    EXPECT_THAT(find_tier(tree_.files(), "a=0;b=1", "c").error().message, HasSubstr("its tiers are a, b"));
}

TEST_F(KnownTiers, RoomIsWhatIsFreeAndWhatTheCacheCanGiveUpButForAReserve) {
    tree_.put("sys/devices/system/node/node1/meminfo",
              "Node 1 MemTotal:       1000000 kB\nNode 1 MemFree:        300000 kB\n"
              "Node 1 Active(file):    60000 kB\nNode 1 Inactive(file):  40000 kB\n");
    EXPECT_EQ(room_in(tree_.files(), {1}), Bytes{(300'000 + 50'000 - 20'000) * 1024ULL});
    tree_.put("proc/zoneinfo", "Node 1, zone Normal\n  pages free 60000\n        high 10000\n");
    EXPECT_EQ(room_in(tree_.files(), {1}), Bytes{(200'000 + 50'000 - 20'000) * 1024ULL})
        << "above watermarks";
    EXPECT_EQ(room_in(tree_.files(), {7}), Bytes{}) << "a node that is not there";
}

}  // namespace
}  // namespace memtide::library
