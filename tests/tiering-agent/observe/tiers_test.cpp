#include "tiering-agent/observe/tiers.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

NodeFacts with_cpus(int node, Bytes capacity = gibibytes(4)) {
    return {.node = node,
            .has_cpus = true,
            .capacity = capacity,
            .free = mebibytes(64),
            .distances = {{node, 10}}};
}
NodeFacts without_cpus(int node, unsigned latency_ns = 0) {
    return {.node = node,
            .capacity = gibibytes(8),
            .free = gibibytes(1),
            .performance = {.read_latency_ns = latency_ns, .write_latency_ns = latency_ns},
            .distances = {}};
}
std::vector<std::vector<int>> nodes_of(const Result<Tiers>& tiers) {
    std::vector<std::vector<int>> nodes;
    if (tiers)
        for (const Tier& tier : tiers->tiers) nodes.push_back(tier.nodes);
    return nodes;
}
using Groups = std::vector<std::vector<int>>;

TEST(TiersByRule, NodesWithCpusAreTheFastestTier) {
    const auto tiers = group_tiers({without_cpus(0), with_cpus(1), with_cpus(2)});
    ASSERT_EQ(nodes_of(tiers), (Groups{{1, 2}, {0}}));
    EXPECT_EQ(tiers->tiers[0].name, "fast");
    EXPECT_EQ(tiers->tiers[0].capacity, gibibytes(8));
    EXPECT_EQ(tiers->tiers[0].free, mebibytes(128));
    EXPECT_EQ(tiers->tiers[0].why, "have CPUs");
    EXPECT_EQ(tiers->tiers[1].name, "slow");
    EXPECT_EQ(tiers->tier_of(0), 1U);
    EXPECT_EQ(tiers->tier_of(3), std::nullopt);
}

TEST(TiersByRule, LatencyTellsTheOthersApart) {
    const auto tiers = group_tiers({with_cpus(0), without_cpus(1, 900), without_cpus(2, 250),
                                    without_cpus(3, 300), without_cpus(4, 301)});
    ASSERT_EQ(nodes_of(tiers), (Groups{{0}, {2, 3}, {4}, {1}}));
    EXPECT_EQ(tiers->tiers[1].why, "no CPUs; latency of 250 to 300 ns (HMAT or CDAT)");
    EXPECT_EQ(tiers->tiers[2].name, "slow-2");
    EXPECT_EQ(tiers->tiers[3].name, "slow-3");
}

TEST(TiersByRule, KernelTiersCountWhenALatencyIsMissing) {
    auto fast = without_cpus(2);
    auto slow = without_cpus(1, 250);
    fast.kernel_tier = 22;
    slow.kernel_tier = 40;
    const auto tiers = group_tiers({with_cpus(0), slow, fast});
    ASSERT_EQ(nodes_of(tiers), (Groups{{0}, {2}, {1}}));
    EXPECT_EQ(tiers->tiers[1].why, "no CPUs; the kernel's memory_tier22");
}

TEST(TiersByRule, DistanceCountsWhenTheKernelPutsAllNodesInOneTier) {
    auto far = without_cpus(1);
    auto near = without_cpus(2);
    far.kernel_tier = near.kernel_tier = 4;
    far.distances = {{0, 40}, {3, 31}, {2, 5}};  // the nearest node with CPUs counts, not the nearest node
    near.distances = {{0, 20}, {3, 31}};
    const auto tiers = group_tiers({with_cpus(0), far, near, with_cpus(3)});
    ASSERT_EQ(nodes_of(tiers), (Groups{{0, 3}, {2}, {1}}));
    EXPECT_EQ(tiers->tiers[2].why, "no CPUs; distance 31 from the nearest CPUs");
}

TEST(TiersByRule, NodesOfNothingKnownAreOneTier) {
    EXPECT_EQ(nodes_of(group_tiers({without_cpus(1), without_cpus(0)})), (Groups{{0, 1}}));
    EXPECT_EQ(nodes_of(group_tiers({})), Groups{});
}

TEST(TiersByRule, NodeWithoutMemoryIsInNoneButItsCpusCount) {
    auto cpus_alone = with_cpus(0, Bytes{});
    auto near = without_cpus(1);
    auto far = without_cpus(2);
    near.distances = {{0, 12}};
    far.distances = {{0, 14}};
    const auto tiers = group_tiers({cpus_alone, near, far});
    ASSERT_EQ(nodes_of(tiers), (Groups{{1}, {2}}));
    EXPECT_EQ(tiers->left_out, (std::vector<NodeLeftOut>{{0, "it has no memory"}}));
}

TEST(TiersByRule, NodesComeAndGo) {
    const FakeTree tree;
    tree.put_node({.number = 0, .cpus = "0", .mebibytes = 512, .distances = "10"});
    EXPECT_EQ(nodes_of(group_tiers(read_nodes(tree.files()))), (Groups{{0}}));
    tree.put_node({.number = 1, .mebibytes = 512, .distances = "20 10"});
    EXPECT_EQ(nodes_of(group_tiers(read_nodes(tree.files()))), (Groups{{0}, {1}}));
    tree.remove("sys/devices/system/node/node1");
    EXPECT_EQ(nodes_of(group_tiers(read_nodes(tree.files()))), (Groups{{0}}));
}

TEST(TiersByConfiguration, AreAsItSaysInItsOrder) {
    const auto tiers = group_tiers({with_cpus(0), without_cpus(1)},
                                   {{.name = "hbm", .nodes = {1}}, {.name = "ddr", .nodes = {0}}});
    ASSERT_EQ(nodes_of(tiers), (Groups{{1}, {0}}));
    EXPECT_EQ(tiers->tiers[0].name, "hbm");
    EXPECT_EQ(tiers->tiers[0].why, "the configuration says so");
    EXPECT_TRUE(tiers->notes.empty());
}

TEST(TiersByConfiguration, NodeThatIsNotThereMayComeLater) {
    const std::vector<TierOverride> overrides{{.name = "dram", .nodes = {0}}, {.name = "cxl", .nodes = {1}}};
    const auto before = group_tiers({with_cpus(0)}, overrides);
    ASSERT_EQ(nodes_of(before), (Groups{{0}, {}}));
    EXPECT_EQ(before->notes, std::vector<std::string>{"tier \"cxl\" names node 1, which is not there (yet)"});
    EXPECT_EQ(before->tiers[1].why, "the configuration says so; none of its nodes is there now");
    EXPECT_EQ(nodes_of(group_tiers({with_cpus(0), without_cpus(1)}, overrides)), (Groups{{0}, {1}}));
}

TEST(TiersByConfiguration, NodeWithoutMemoryIsNoted) {
    const auto tiers = group_tiers({with_cpus(0, Bytes{})}, {{.name = "dram", .nodes = {0}}});
    ASSERT_TRUE(tiers.has_value());
    EXPECT_EQ(tiers->notes, std::vector<std::string>{"tier \"dram\" names node 0, which has no memory"});
}

TEST(TiersByConfiguration, NodeThatIsNamedNowhereIsLeftOutUnlessATierTakesTheRest) {
    const std::vector<NodeFacts> nodes{with_cpus(0), without_cpus(1), without_cpus(2)};
    const auto without = group_tiers(nodes, {{.name = "dram", .nodes = {0}}, {.name = "cxl", .nodes = {1}}});
    ASSERT_EQ(nodes_of(without), (Groups{{0}, {1}}));
    ASSERT_EQ(without->left_out.size(), 1U);
    EXPECT_EQ(without->left_out[0].node, 2);
    const auto with =
        group_tiers(nodes, {{.name = "dram", .nodes = {0}}, {.name = "cxl", .nodes = {1}, .rest = true}});
    EXPECT_EQ(nodes_of(with), (Groups{{0}, {1, 2}}));
}

TEST(TiersByConfiguration, NodeInTwoTiersIsRefused) {
    const auto tiers =
        group_tiers({with_cpus(0)}, {{.name = "a", .nodes = {0}}, {.name = "b", .nodes = {0}}});
    ASSERT_FALSE(tiers.has_value());
    EXPECT_EQ(tiers.error().message, "node 0 is in two tiers, \"a\" and \"b\"");
    EXPECT_FALSE(group_tiers({}, {{.name = "a"}, {.name = "a"}}).has_value());
    EXPECT_FALSE(group_tiers({}, {{.name = "a", .rest = true}, {.name = "b", .rest = true}}).has_value());
}

}  // namespace
}  // namespace memtide::agent
