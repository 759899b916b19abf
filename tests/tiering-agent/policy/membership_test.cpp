#include <random>

#include <gtest/gtest.h>

#include "tiering-agent/policy/targets.h"

namespace memtide::agent {
namespace {

constexpr int kAgent = 99;

Process process(int pid, int parent, std::string exe, std::uint64_t start_time = 0) {
    return {.id = {pid, start_time == 0 ? static_cast<std::uint64_t>(pid) : start_time},
            .parent = parent,
            .uid = 0,
            .exe = std::move(exe)};
}
TieringTarget target(std::string name, const char* exe, bool children = true) {
    TieringTarget made{.name = std::move(name), .children = children};
    if (exe != nullptr) made.match.exes = {*Glob::parse(exe, Glob::Of::kPath)};
    return made;
}
using Index = std::optional<std::size_t>;
std::vector<Index> targets_of(const std::vector<Membership>& members) {
    std::vector<Index> targets;
    for (const Membership& member : members) targets.push_back(member.target);
    return targets;
}

TEST(Membership, FirstTargetThatMatchesDecides) {
    const std::vector<TieringTarget> targets{target("a", "/bin/a"), target("rest", nullptr)};
    const auto members =
        assign_targets({process(10, 1, "/bin/a"), process(11, 1, "/bin/b")}, targets, kAgent);
    EXPECT_EQ(targets_of(members), (std::vector<Index>{0, 1}));
    EXPECT_EQ(explain(members[0], targets), "matches target \"a\"");
}

TEST(Membership, WithoutAMatchThereIsNone) {
    const auto members = assign_targets({process(10, 1, "/bin/b")}, {target("a", "/bin/a")}, kAgent);
    EXPECT_EQ(members[0].target, std::nullopt);
    EXPECT_EQ(members[0].reason, MembershipReason::kMatchesNone);
    EXPECT_TRUE(assign_targets({}, {}, kAgent).empty());
}

TEST(Membership, ChildrenFollowUnlessTheyMatchAnEarlierOne) {
    const std::vector<TieringTarget> targets{target("first", "/bin/first"), target("a", "/bin/a"),
                                             target("late", "/bin/late")};
    const auto members =
        assign_targets({process(10, 1, "/bin/a"), process(11, 10, "/bin/sh"), process(12, 11, "/bin/late"),
                        process(13, 11, "/bin/first"), process(14, 13, "/bin/sh")},
                       targets, kAgent);
    EXPECT_EQ(targets_of(members), (std::vector<Index>{1, 1, 1, 0, 0}));
    EXPECT_EQ(members[2].reason, MembershipReason::kFollowsParent);
    EXPECT_EQ(explain(members[2], targets), "follows its parent 11, of target \"a\"");
}

TEST(Membership, ChildrenDoNotFollowWhenTheTargetSaysSo) {
    const auto members = assign_targets({process(10, 1, "/bin/a"), process(11, 10, "/bin/sh")},
                                        {target("a", "/bin/a", false)}, kAgent);
    EXPECT_EQ(targets_of(members), (std::vector<Index>{0, std::nullopt}));
}

TEST(Membership, ParentMayHaveAHigherPid) {
    const auto members = assign_targets({process(10, 500, "/bin/sh", 9000), process(500, 1, "/bin/a", 8000)},
                                        {target("a", "/bin/a")}, kAgent);
    EXPECT_EQ(targets_of(members), (std::vector<Index>{0, 0}));
}

TEST(Membership, ProcessThatHasThePidOfADeadParentIsNoParent) {
    const auto members = assign_targets({process(10, 500, "/bin/sh", 100), process(500, 1, "/bin/a", 8000)},
                                        {target("a", "/bin/a")}, kAgent);
    EXPECT_EQ(targets_of(members), (std::vector<Index>{std::nullopt, 0}));
}

TEST(Membership, ChildKeepsItsTargetWhenItsParentEnds) {
    const std::vector<TieringTarget> targets{target("a", "/bin/a")};
    const auto before =
        assign_targets({process(10, 1, "/bin/a"), process(11, 10, "/bin/sh")}, targets, kAgent);
    const auto orphaned = assign_targets({process(11, 1, "/bin/sh")}, targets, kAgent, before);
    EXPECT_EQ(targets_of(orphaned), std::vector<Index>{0});
    const auto later =
        assign_targets({process(11, 1, "/bin/sh"), process(12, 11, "/bin/x")}, targets, kAgent, orphaned);
    EXPECT_EQ(targets_of(later), (std::vector<Index>{0, 0}));
    // Another process with the same pid keeps nothing.
    EXPECT_EQ(targets_of(assign_targets({process(11, 1, "/bin/sh", 7777)}, targets, kAgent, orphaned)),
              std::vector<Index>{std::nullopt});
}

TEST(Membership, ChildOfAParentThatMatchesNoLongerIsReleased) {
    const std::vector<TieringTarget> targets{target("a", "/bin/a")};
    const auto before =
        assign_targets({process(10, 1, "/bin/a"), process(11, 10, "/bin/sh")}, targets, kAgent);
    const auto after =
        assign_targets({process(10, 1, "/bin/other"), process(11, 10, "/bin/sh")}, targets, kAgent, before);
    EXPECT_EQ(targets_of(after), (std::vector<Index>{std::nullopt, std::nullopt}));
}

TEST(Membership, SomeAreNeverTouched) {
    auto kernel = process(2, 0, "");
    kernel.is_kernel_thread = true;
    auto hidden = process(60, 1, "");
    hidden.comm = "memtide-fabric-";
    const auto members =
        assign_targets({process(1, 0, "/sbin/init"), kernel, hidden,
                        process(70, 1, "/opt/bin/memtide-memory-node"), process(71, 70, "/bin/sh"),
                        process(80, 1, "/usr/bin/memtide"), process(kAgent, 1, "/tmp/renamed-agent")},
                       {target("rest", nullptr)}, kAgent);
    EXPECT_EQ(targets_of(members), (std::vector<Index>{std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                                                       0, 0, std::nullopt}));
    EXPECT_EQ(members[0].reason, MembershipReason::kInit);
    EXPECT_EQ(members[1].reason, MembershipReason::kKernelThread);
    EXPECT_EQ(members[2].reason, MembershipReason::kMemtide);
    EXPECT_EQ(members[3].reason, MembershipReason::kMemtide);
    EXPECT_EQ(members[6].reason, MembershipReason::kAgent);
}

TEST(Membership, ParentsInACircleAreNoTrap) {
    std::mt19937 random(3);
    const std::vector<TieringTarget> targets{target("a", "/bin/a"), target("b", "/bin/b")};
    for (int round = 0; round < 200; ++round) {
        std::vector<Process> processes;
        for (int pid = 10; pid < 60; ++pid)
            processes.push_back(process(pid, 10 + static_cast<int>(random() % 50),
                                        random() % 5 == 0   ? "/bin/a"
                                        : random() % 5 == 0 ? "/bin/b"
                                                            : "/bin/c",
                                        1));
        const auto members = assign_targets(processes, targets, kAgent);
        ASSERT_EQ(members.size(), processes.size());
        for (std::size_t i = 0; i < members.size(); ++i) {
            EXPECT_EQ(members[i].process, processes[i].id);
            if (processes[i].exe != "/bin/a") continue;
            EXPECT_EQ(members[i].target, Index{0});
        }
    }
}

TEST(Membership, LongLineOfParentsIsNoTrap) {
    std::vector<Process> processes;
    for (int pid = 100; pid < 20'100; ++pid) processes.push_back(process(pid, pid - 1, "/bin/sh", 5));
    processes.front().exe = "/bin/a";
    const auto members = assign_targets(processes, {target("a", "/bin/a")}, kAgent);
    EXPECT_EQ(members.back().target, Index{0});
}

}  // namespace
}  // namespace memtide::agent
