// What needs no kernel: whose monitor it is. The rest is seen in a guest (tests/tiering-agent/tiering_qemu):
// the monitor of the machine that builds is not ours to use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/tiering-agent/observe/fake_tree.h"
#include "tiering-agent/track/damon_monitors.h"
#include "tiering-agent/track/trace_ring.h"

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

// Of this machine's kernel: a system call of this thread.
TEST(TraceRing, TellsTheEventsOfOneThread) {
    const Files files;
    const auto id = files.read_number("sys/kernel/tracing/events/syscalls/sys_enter_getppid/id");
    if (!id) GTEST_SKIP() << "no trace events here: " << id.error().message;
    auto ring = TraceRing::open(*id, static_cast<int>(syscall(SYS_gettid)), 4096);
    if (!ring) GTEST_SKIP() << "no perf events here: " << ring.error().message;
    const auto drain = [&] {
        std::pair<int, int> seen{};
        ring->drain([&](std::span<const std::byte> raw) { seen.first += raw.size() >= 8 ? 1 : 0; },
                    [&] { ++seen.second; });
        return seen;
    };
    EXPECT_EQ(drain(), std::pair(0, 0));
    for (int i = 0; i < 5; ++i) syscall(SYS_getppid);
    EXPECT_EQ(drain(), std::pair(5, 0));
    // More than there is room for, and on from there.
    for (int i = 0; i < 1'000; ++i) syscall(SYS_getppid);
    const auto [some, none_yet] = drain();
    EXPECT_GT(some, 10);
    EXPECT_LT(some, 1'000);
    for (int i = 0; i < 3; ++i) syscall(SYS_getppid);
    const auto [rest, losses] = drain();
    EXPECT_EQ(rest, 3);
    EXPECT_EQ(none_yet + losses, 1);
}

TEST(TraceRing, AThreadThatIsNotThereIsSaidToBe) {
    const auto ring = TraceRing::open(1, 0x3fffff, 4096);
    ASSERT_FALSE(ring);
    EXPECT_NE(ring.error().message, "");
}

}  // namespace
}  // namespace memtide::agent
