#include "tiering-agent/observe/pressure.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

constexpr const char* kText =
    "some avg10=12.50 avg60=3.00 avg300=1.00 total=7\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=1\n";

TEST(Pressure, IsTheShareOfTheLastTenSecondsInWhichSomeTaskWaited) {
    EXPECT_EQ(parse_pressure(kText), 0.125);
    EXPECT_EQ(parse_pressure("full avg10=1.00\nsome avg10=0.00 total=3\n"), 0);
}

TEST(Pressure, WhateverElseTheTextHoldsIsNone) {
    for (const char* const text :
         {"", "some", "some avg10=", "some avg10=x", "some avg10=nan", "some avg10=101", "some avg10=-1",
          "full avg10=1.00", "some avg60=1.00", "\n\n"})
        EXPECT_FALSE(parse_pressure(text)) << text;
}

TEST(Pressure, OfACgroupIsInItsFolder) {
    const FakeTree tree;
    EXPECT_FALSE(read_memory_pressure(tree.files()));
    tree.put("proc/pressure/memory", kText);
    tree.put("sys/fs/cgroup/a.slice/b.service/memory.pressure", "some avg10=50.00 total=1\n");
    EXPECT_EQ(read_memory_pressure(tree.files()), 0.125);
    EXPECT_EQ(read_memory_pressure(tree.files(), "/a.slice/b.service"), 0.5);
    EXPECT_FALSE(read_memory_pressure(tree.files(), "/a.slice"));
    EXPECT_FALSE(read_memory_pressure(tree.files(), "/../a.slice/b.service"));
    EXPECT_FALSE(read_memory_pressure(tree.files(), ""));
}

}  // namespace
}  // namespace memtide::agent
