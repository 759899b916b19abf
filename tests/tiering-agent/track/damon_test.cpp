// What needs no kernel: whose monitor it is. The rest is seen in a guest (tests/tiering-agent/tiering_qemu):
// the monitor of the machine that builds is not ours to use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"
#include "tiering-agent/track/damon_monitors.h"

namespace memtide::agent {
namespace {

using testing::HasSubstr;

class Damon : public testing::Test {
  protected:
    Damon() : files_(tree_.files().absolute("")) {}
    void put_event() const {
        const auto field = [](const char* name, int offset, int size) {
            return "\tfield:unsigned long " + std::string(name) + ";\toffset:" + std::to_string(offset) +
                   ";\tsize:" + std::to_string(size) + ";\tsigned:0;\n";
        };
        tree_.put("sys/kernel/tracing/events/damon/damon_aggregated/id", "734\n");
        tree_.put("sys/kernel/tracing/events/damon/damon_aggregated/format",
                  field("nr_regions", 16, 4) + field("start", 24, 8) + field("end", 32, 8) +
                      field("nr_accesses", 40, 4));
    }
    void put_daemon(int number, const std::string& mark) const {
        const std::string folder = "sys/kernel/mm/damon/admin/kdamonds/" + std::to_string(number);
        tree_.put(folder + "/state", "on\n");
        tree_.put(folder + "/contexts/nr_contexts", "1\n");
        tree_.put(folder + "/contexts/0/monitoring_attrs/intervals/update_us", mark + "\n");
    }
    FakeTree tree_;
    Files files_;
};

TEST_F(Damon, WhatIsMissingIsNamed) {
    EXPECT_EQ(DamonMonitors::claim(files_).error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(DamonMonitors::claim(files_).error().message, HasSubstr("damon_aggregated"));
    put_event();
    EXPECT_EQ(DamonMonitors::claim(files_).error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(DamonMonitors::claim(files_).error().message, HasSubstr("CONFIG_DAMON_SYSFS"));
}

TEST_F(Damon, SomebodyElsesMonitorIsLeftAlone) {
    put_event();
    tree_.put("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "2\n");
    put_daemon(1, "1000000");
    const auto claimed = DamonMonitors::claim(files_);
    ASSERT_FALSE(claimed);
    EXPECT_EQ(claimed.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(claimed.error().message, HasSubstr("kdamond 1"));
    EXPECT_EQ(files_.read("sys/kernel/mm/damon/admin/kdamonds/1/state").value(), "on");
    EXPECT_EQ(files_.read("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds").value(), "2");
}

// What an agent that was killed left behind.
TEST_F(Damon, ItsOwnIsTurnedOffAndTakenOver) {
    put_event();
    tree_.put("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "1\n");
    put_daemon(0, "3600000077");
    // The kernel makes folders for what the number says; here there are none.
    const auto claimed = DamonMonitors::claim(files_);
    EXPECT_FALSE(claimed);
    EXPECT_EQ(files_.read("sys/kernel/mm/damon/admin/kdamonds/0/state").value(), "off");
    EXPECT_EQ(files_.read("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds").value(), "32");
}

}  // namespace
}  // namespace memtide::agent
