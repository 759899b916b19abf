#include "tiering-agent/observe/processes.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

using namespace std::chrono_literals;
using std::string_literals::operator""s;

TEST(ProcessStatText, IsRead) {
    const auto stat = parse_stat(
        "28829 (cat) R 28818 28818 27897 0 -1 4194304 99 0 0 0 7 8 0 0 20 0 1 0 1518889 3133440 410 "
        "18446744073709551615 "
        "93926962663424 93926962683305 140726028994624 0 0 0\n");
    ASSERT_TRUE(stat.has_value());
    EXPECT_EQ(*stat, (ProcessStat{.pid = 28829,
                                  .comm = "cat",
                                  .state = 'R',
                                  .parent = 28818,
                                  .flags = 4194304,
                                  .minor_faults = 99,
                                  .user_ticks = 7,
                                  .system_ticks = 8,
                                  .start_time = 1518889,
                                  .rss_pages = 410,
                                  .start_code = 93926962663424,
                                  .start_stack = 140726028994624}));
}

TEST(ProcessStatText, CommMayLookLikeTheRestOfTheLine) {
    for (const std::string comm : {"a b", ") R 1 (", "((", "tmux: server", "a)\nb", "", ")"}) {
        const auto stat =
            parse_stat("5 (" + comm + ") S 4 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0 0 0 0 0");
        ASSERT_TRUE(stat.has_value()) << comm;
        EXPECT_EQ(stat->comm, comm);
        EXPECT_EQ(stat->parent, 4);
        EXPECT_EQ(stat->start_time, 77U);
    }
}

TEST(ProcessStatText, GarbageIsNone) {
    for (const char* text : {"", "()", "1", "1 (a", "1 a) S 2", ")1 (", "1 (a) S", "x (a) S 1 0 0 0 -1 0 0",
                             "-1 (a) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0 0 0 0"})
        EXPECT_FALSE(parse_stat(text).has_value()) << text;
}

TEST(CgroupText, GivesPathAndInnermostUnit) {
    EXPECT_EQ(parse_cgroup("0::/system.slice/redis.service\n"),
              (CgroupMembership{"/system.slice/redis.service", "redis.service"}));
    EXPECT_EQ(parse_cgroup("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope/inner"),
              (CgroupMembership{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope/inner",
                                "app-x.scope"}));
    EXPECT_EQ(parse_cgroup("0::/"), (CgroupMembership{"/", ""}));
}

TEST(CgroupText, UnitComesFromSystemdsOwnHierarchyWithoutCgroup2) {
    EXPECT_EQ(parse_cgroup("4:memory:/x.service\n1:name=systemd:/system.slice/a.service\n0::/\n"),
              (CgroupMembership{"/", "a.service"}));
    EXPECT_EQ(parse_cgroup("1:name=systemd:/system.slice/a.service"), (CgroupMembership{"", "a.service"}));
    EXPECT_EQ(parse_cgroup("nonsense\n::\n0:"), CgroupMembership{});
}

TEST(CommandLine, IsOneLineOfBoundedLength) {
    EXPECT_EQ(command_line("redis-server\0*:6379\0\0\0"s), "redis-server *:6379");
    EXPECT_EQ(command_line("a\nb\0\x1b[31m"s), "a?b ?[31m");
    EXPECT_EQ(command_line(std::string(100'000, 'x')).size(), kCommandLimit);
    EXPECT_EQ(command_line(""), "");
}

TEST(ProcessTable, HasAllThatIsKnownOfAProcess) {
    const FakeTree tree;
    tree.put_process({.pid = 70,
                      .start_time = 900,
                      .parent = 3,
                      .comm = "red is)",
                      .exe = "/usr/bin/redis (deleted)",
                      .arguments = "redis-server\0*:6379\0"s,
                      .cgroup = "0::/system.slice/redis.service",
                      .uid = 112,
                      .nodes = "0,2-3"});
    tree.put("proc/meminfo", "");
    tree.put("proc/self/stat", "");
    ProcessTable table(tree.files());
    const auto processes = table.read();
    ASSERT_TRUE(processes.has_value()) << processes.error().message;
    ASSERT_EQ(processes->size(), 1U);
    const Process& process = processes->front();
    EXPECT_EQ(process.id, (ProcessId{70, 900}));
    EXPECT_EQ(process.parent, 3);
    EXPECT_EQ(process.uid, 112U);
    EXPECT_EQ(process.allowed_nodes, (std::set{0, 2, 3}));
    EXPECT_EQ(process.comm, "red is)");
    EXPECT_EQ(process.exe, "/usr/bin/redis");
    EXPECT_EQ(process.command, "redis-server *:6379");
    EXPECT_EQ(process.cgroup, "/system.slice/redis.service");
    EXPECT_EQ(process.unit, "redis.service");
    EXPECT_FALSE(process.is_kernel_thread);
    EXPECT_GT(process.rss.value, 0U);
    EXPECT_GT(process.cpu_time, 0ms);
}

TEST(ProcessTable, LeavesOutZombiesAndWhatVanishesOrMakesNoSense) {
    const FakeTree tree;
    tree.put_process({.pid = 1});
    tree.put_process({.pid = 2, .state = 'Z'});
    tree.put("proc/3/cmdline", "gone before its stat was read");
    tree.put("proc/4/stat", "nonsense");
    ProcessTable table(tree.files());
    const auto processes = table.read();
    ASSERT_TRUE(processes.has_value());
    ASSERT_EQ(processes->size(), 1U);
    EXPECT_EQ(processes->front().id.pid, 1);
}

TEST(ProcessTable, HiddenFilesLeaveTheirFieldsEmpty) {
    const FakeTree tree;
    tree.put_stat({.pid = 9});
    ProcessTable table(tree.files());
    const auto processes = table.read();
    ASSERT_TRUE(processes.has_value());
    EXPECT_EQ(processes->front().exe, "");
    EXPECT_EQ(processes->front().uid, std::nullopt);
    EXPECT_EQ(processes->front().allowed_nodes, std::nullopt);
    EXPECT_EQ(processes->front().cgroup, "");
}

TEST(ProcessTable, WithoutProcIsAnError) {
    const FakeTree tree;
    ProcessTable table(tree.files());
    const auto processes = table.read();
    ASSERT_FALSE(processes.has_value());
    EXPECT_NE(processes.error().message.find("mounted"), std::string::npos);
}

TEST(ProcessTable, ReusedPidIsAnotherProcess) {
    const FakeTree tree;
    tree.put_process({.pid = 5, .start_time = 1, .exe = "/bin/old"});
    ProcessTable table(tree.files());
    EXPECT_EQ(table.read()->front().exe, "/bin/old");
    tree.put_process({.pid = 5, .start_time = 2, .exe = "/bin/new"});
    EXPECT_EQ(table.read()->front().exe, "/bin/new");
}

TEST(ProcessTable, ExecveIsSeenAtOnce) {
    const FakeTree tree;
    tree.put_process({.pid = 5, .start_time = 1, .exe = "/bin/sh", .start_code = 1});
    ProcessTable table(tree.files());
    for (unsigned pass = 0; pass < ProcessTable::kYoungPasses; ++pass)
        EXPECT_EQ(table.read()->front().exe, "/bin/sh");
    tree.put_process({.pid = 5, .start_time = 1, .exe = "/bin/java", .arguments = "java", .start_code = 2});
    EXPECT_EQ(table.read()->front().exe, "/bin/java");
}

TEST(ProcessTable, OldProcessesAreReadAnewOnlyNowAndThen) {
    const FakeTree tree;
    for (int pid = 10; pid < 10 + int{ProcessTable::kRefreshPasses}; ++pid) tree.put_process({.pid = pid});
    ProcessTable table(tree.files());
    for (unsigned pass = 0; pass < ProcessTable::kYoungPasses; ++pass) ASSERT_TRUE(table.read().has_value());
    for (int pid = 10; pid < 10 + int{ProcessTable::kRefreshPasses}; ++pid)
        tree.put_process({.pid = pid, .cgroup = "0::/moved"});
    for (unsigned pass = 1; pass <= ProcessTable::kRefreshPasses; ++pass) {
        const auto processes = table.read();
        ASSERT_TRUE(processes.has_value());
        const auto moved = std::ranges::count(*processes, "/moved", &Process::cgroup);
        EXPECT_EQ(moved, pass);  // one more each pass
    }
}

TEST(ProcessTable, KernelThreadsAreToldApart) {
    const FakeTree tree;
    tree.put_process({.pid = 2, .comm = "kthreadd", .flags = 2129984});
    ProcessTable table(tree.files());
    EXPECT_TRUE(table.read()->front().is_kernel_thread);
}

TEST(ProcessTable, TenThousandProcessesAreOnePass) {
    const FakeTree tree;
    tree.put_process({.pid = 1});
    for (int pid = 2; pid <= 10'000; ++pid) tree.link("proc/" + std::to_string(pid), "1");
    ProcessTable table(tree.files());
    EXPECT_EQ(table.read()->size(), 10'000U);
    tree.remove("proc/5000");
    EXPECT_EQ(table.read()->size(), 9'999U);
}

}  // namespace
}  // namespace memtide::agent
