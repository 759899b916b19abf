#include "tiering-agent/observe/generations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// As Linux 6.12 prints it.
constexpr const char* kText =
    "memcg     1 /\n"
    " node     0\n"
    "          0       2000        100          50 \n"
    "          1       1000         10           5 \n"
    "memcg    42 /load.slice/a b.service\n"
    " node     0\n"
    "         26     140280       1024         512 \n"
    "         27        280          8           0 \n"
    " node     1\n"
    "          3         10        700          1x\n";

TEST(Generations, AreReadByCgroupAndNode) {
    const auto cgroups = parse_generations(kText);
    ASSERT_EQ(cgroups.size(), 2U);
    EXPECT_EQ(cgroups[0].cgroup, "/");
    EXPECT_EQ(cgroups[1].cgroup, "/load.slice/a b.service");
    EXPECT_EQ(cgroups[1].id, 42U);
    ASSERT_EQ(cgroups[1].nodes.size(), 2U);
    EXPECT_EQ(
        cgroups[1].nodes[0],
        (NodeGenerations{.node = 0, .newest = 27, .generations = {{140'280ms, 1'024, 512}, {280ms, 8, 0}}}));
    EXPECT_EQ(cgroups[1].nodes[1].generations, (std::vector<Generation>{{10ms, 700, 1}}));
}

TEST(Generations, WhatIsNotUnderstoodIsLeftOut) {
    for (const char* const text :
         {"", "\n\n", "memcg", "memcg x /a\n node 0\n 1 2 3 4\n", " node 0\n 1 2 3 4\n", "1 2 3 4"})
        EXPECT_THAT(parse_generations(text), IsEmpty()) << text;
    const auto cgroups =
        parse_generations("memcg 7\n node x\n 1 2 3 4\n node 1\n 1 2\n 99999999999999999999 1 1 1\n");
    ASSERT_EQ(cgroups.size(), 1U);
    EXPECT_EQ(cgroups[0].cgroup, "/");
    ASSERT_EQ(cgroups[0].nodes.size(), 1U);
    EXPECT_THAT(cgroups[0].nodes[0].generations, IsEmpty());
}

TEST(Generations, OfTheCgroupsThatAreAskedForBeginAnew) {
    FakeTree tree;
    tree.put("sys/kernel/debug/lru_gen", kText);
    const auto found = read_generations(tree.files(), {"/load.slice/a b.service", "/other"});
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), 1U);
    ASSERT_TRUE(begin_generations(tree.files(), *found));
    EXPECT_THAT(*tree.files().read("sys/kernel/debug/lru_gen"), testing::StartsWith("+ 42 1 3"))
        << "the last that was written";
}

TEST(Generations, WithoutThemItIsSaidWhatToDo) {
    FakeTree tree;
    const auto none = read_generations(tree.files(), {"/"});
    EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(none.error().message, HasSubstr("debugfs"));
    tree.put("sys/kernel/debug/lru_gen", "");
    const auto off = read_generations(tree.files(), {"/"});
    EXPECT_EQ(off.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(off.error().message, HasSubstr("/sys/kernel/mm/lru_gen/enabled"));
}

}  // namespace
}  // namespace memtide::agent
