#include "tiering-agent/observe/nodes.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

TEST(NumberList, IsReadAsSysfsWritesIt) {
    EXPECT_EQ(parse_number_list(""), std::set<int>{});
    EXPECT_EQ(parse_number_list("3"), std::set<int>{3});
    EXPECT_EQ(parse_number_list("0-2,5"), (std::set<int>{0, 1, 2, 5}));
}

TEST(NumberList, AnythingElseIsRefused) {
    for (const char* text :
         {"a", "1,", ",1", "2-1", "-1", "1-", "1--2", "1 2", "0-65536", "0-99999999999", "1,,2"})
        EXPECT_FALSE(parse_number_list(text).has_value()) << text;
}

TEST(Nodes, AreReadWithAllThatIsSaidOfThem) {
    const FakeTree tree;
    tree.put("sys/devices/system/node/online", "0-1\n");
    tree.put_node(
        {.number = 0, .cpus = "0-3", .mebibytes = 1024, .free_mebibytes = 100, .distances = "10 20"});
    tree.put_node(
        {.number = 1, .mebibytes = 2048, .free_mebibytes = 2000, .distances = "20 10", .latency_ns = 250});
    tree.put("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n");
    const auto nodes = read_nodes(tree.files());
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0], (NodeFacts{.node = 0,
                                   .has_cpus = true,
                                   .capacity = gibibytes(1),
                                   .free = mebibytes(100),
                                   .performance = {},
                                   .kernel_tier = 4,
                                   .distances = {{0, 10}, {1, 20}}}));
    EXPECT_FALSE(nodes[1].has_cpus);
    EXPECT_EQ(nodes[1].capacity, gibibytes(2));
    EXPECT_EQ(nodes[1].performance.latency_ns(), 250U);
}

TEST(Nodes, LatencySeenFromCpusCountsBeforeThatSeenFromDevices) {
    const FakeTree tree;
    tree.put_node({.number = 1, .mebibytes = 1, .latency_ns = 100});
    tree.put("sys/devices/system/node/node1/access1/initiators/read_latency", "300\n");
    EXPECT_EQ(read_nodes(tree.files()).at(0).performance.latency_ns(), 300U);
}

TEST(Nodes, DistancesAreOfTheNodesThatAreOnline) {
    const FakeTree tree;
    tree.put("sys/devices/system/node/online", "0,7\n");
    tree.put_node({.number = 0, .cpus = "0", .mebibytes = 1, .distances = "10 31"});
    tree.put_node({.number = 7, .mebibytes = 1, .distances = "31 10"});
    EXPECT_EQ(read_nodes(tree.files()).at(1).distances, (std::map<int, int>{{0, 31}, {7, 10}}));
}

TEST(Nodes, GarbageIsAsIfNotSaid) {
    const FakeTree tree;
    tree.put_node({.number = 0, .cpus = "0", .mebibytes = 1, .distances = "ten twenty"});
    tree.put("sys/devices/system/node/online", "all\n");
    tree.put("sys/devices/system/node/nodeX/meminfo", "Node X MemTotal: 1 kB\n");
    tree.put("sys/devices/system/node/node5/meminfo", "MemTotal:\nNode 5 MemTotal: -5 kB\n\n");
    tree.put("sys/devices/system/node/node0/access0/initiators/read_latency", "fast\n");
    tree.put("sys/devices/virtual/memory_tiering/memory_tierX/nodelist", "0\n");
    tree.put("sys/devices/virtual/memory_tiering/memory_tier1/nodelist", "?\n");
    const auto nodes = read_nodes(tree.files());
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[0].distances.size(), 0U);
    EXPECT_EQ(nodes[0].kernel_tier, std::nullopt);
    EXPECT_EQ(nodes[0].performance, NodePerformance{});
    EXPECT_EQ(nodes[1].capacity, Bytes{});
}

TEST(Nodes, ThereAreNoneOnAKernelWithoutNuma) {
    const FakeTree tree;
    EXPECT_TRUE(read_nodes(tree.files()).empty());
}

}  // namespace
}  // namespace memtide::agent
