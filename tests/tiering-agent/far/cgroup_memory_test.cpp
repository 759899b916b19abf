#include "tiering-agent/far/cgroup_memory.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;

constexpr const char* kPressure =
    "some avg10=0.00 avg60=1.00 avg300=0.00 total=18398\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";

TEST(CgroupMemory, PressureIsThatOfSome) {
    EXPECT_EQ(parse_stalled(kPressure), microseconds(18'398));
    for (const char* const text : {"", "some", "some total=", "full total=7\n", "some total=x"})
        EXPECT_EQ(parse_stalled(text), std::nullopt) << text;
}

TEST(CgroupMemory, ACounterIsFoundByItsWholeName) {
    EXPECT_EQ(
        parse_counter("workingset_refault_anon_x 9\nworkingset_refault_anon 8\n", "workingset_refault_anon"),
        8U);
    EXPECT_EQ(parse_counter("a\nb x\n", "b"), std::nullopt);
    EXPECT_EQ(parse_counter("a\n", "c"), std::nullopt);
}

class CgroupFiles : public testing::Test {
  protected:
    CgroupFiles() {
        tree_.put("proc/pressure/memory", "some avg10=0 avg60=0 avg300=0 total=5\n");
        tree_.put("proc/vmstat", "nr_free_pages 1\nworkingset_refault_anon 77\n");
    }
    FakeTree tree_;
};

TEST_F(CgroupFiles, TellOfTheCgroupAndOfThoseAboveIt) {
    const std::string folder = "sys/fs/cgroup/batch.slice/";
    tree_.put(folder + "memory.stat", "anon 1\n");
    tree_.put(folder + "memory.swap.max", "8192\n");
    tree_.put(folder + "memory.swap.current", "12288\n");
    tree_.put(folder + "a/memory.stat", "anon 1\nworkingset_refault_anon 9\n");
    tree_.put(folder + "a/memory.pressure", kPressure);
    tree_.put(folder + "a/memory.swap.max", "max\n");
    tree_.put(folder + "a/memory.swap.current", "4096\n");
    EXPECT_EQ(read_cgroup_memory(tree_.files(), "/batch.slice/a"),
              (CgroupMemory{.stalled = microseconds(18'398), .refaults = 9, .swap_left = Bytes{0}}));
    tree_.put(folder + "a/memory.swap.max", "1048576\n");
    tree_.put(folder + "memory.swap.current", "0\n");
    EXPECT_EQ(read_cgroup_memory(tree_.files(), "/batch.slice/a").swap_left, Bytes{8192});
}

TEST_F(CgroupFiles, WithoutACgroupTheMachineCounts) {
    const CgroupMemory machine{.stalled = microseconds(5), .refaults = 77, .swap_left = std::nullopt};
    for (const char* const cgroup : {"", "/", "/not/there", "/../outside", "relative"})
        EXPECT_EQ(read_cgroup_memory(tree_.files(), cgroup), machine) << cgroup;
    tree_.remove("proc");
    EXPECT_EQ(read_cgroup_memory(tree_.files(), ""), CgroupMemory{});
}

}  // namespace
}  // namespace memtide::agent
