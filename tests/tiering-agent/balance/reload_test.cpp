// A new configuration while the balancer runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tiering-agent/balance/made_up_machine.h"
#include "tiering-agent/balance/inspector.h"

namespace memtide::agent {
namespace {

using testing::ElementsAre;

class BalanceReload : public testing::Test {
  protected:
    BalanceReload() {
        machine_.put_process(MadeUpMachine::kPid);
        machine_.options_.config.mode = TieringMode::kObserve;
    }
    TieringConfig config() const { return machine_.options_.config; }
    [[nodiscard]] unsigned windows() {
        const auto answer =
            Inspector(machine_.balancer()).explain(MadeUpMachine::kPid, MadeUpMachine::kBegin);
        return answer && answer->heat ? answer->heat->windows : 0;
    }
    MadeUpMachine machine_;
};

TEST_F(BalanceReload, TakesEffectWithTheNextRoundAndKeepsTheHeat) {
    machine_.run(10);
    EXPECT_EQ(machine_.pages_.moved, 0U);
    EXPECT_EQ(windows(), 10U);
    TieringConfig next = config();
    next.mode = TieringMode::kMove;
    bool applied = false;
    machine_.balancer().set_config(next, [&] { applied = true; });
    EXPECT_FALSE(applied);
    EXPECT_EQ(machine_.balancer().status().mode, TieringMode::kObserve);
    const BalanceStatus status = machine_.run(1);
    EXPECT_TRUE(applied);
    EXPECT_EQ(status.mode, TieringMode::kMove);
    EXPECT_EQ(status.promoted_pages, 200U) << "at once, since what was learnt is kept";
    EXPECT_EQ(windows(), 11U);
}

TEST_F(BalanceReload, ProcessesGoToTheirNewTargetsAndCountsStayWithTheNames) {
    TieringConfig first = config();
    first.mode = TieringMode::kMove;
    machine_.options_.config = first;
    machine_.put_process(200, "other", 0, 0, 0);
    EXPECT_EQ(machine_.run(20).targets.at(0).promoted_pages, 200U);
    TieringConfig next = first;
    ProcessMatch match;
    match.exes.push_back(*Glob::parse("other", Glob::Of::kPath));
    next.targets = {{.name = "other", .match = match, .mode = TieringMode::kObserve}, {.name = "all"}};
    machine_.balancer().set_config(next);
    const BalanceStatus status = machine_.run(1);
    ASSERT_EQ(status.targets.size(), 2U);
    EXPECT_EQ(status.targets[0].name, "other");
    EXPECT_EQ(status.targets[0].processes, 1U);
    EXPECT_EQ(status.targets[0].promoted_pages, 0U);
    EXPECT_EQ(status.targets[1].processes, 1U);
    EXPECT_EQ(status.targets[1].promoted_pages, 200U);
    EXPECT_EQ(windows(), 21U);
}

TEST_F(BalanceReload, WhomNoTargetMatchesAnyMoreIsLeftAlone) {
    machine_.run(5);
    TieringConfig next = config();
    next.mode = TieringMode::kMove;
    ProcessMatch nobody;
    nobody.pids = {1'000};
    next.targets = {{.name = "nobody", .match = nobody}};
    machine_.balancer().set_config(next);
    const BalanceStatus status = machine_.run(5);
    EXPECT_EQ(status.targets.at(0).processes, 0U);
    EXPECT_EQ(machine_.pages_.moved, 0U);
    machine_.balancer().set_config(config());
    EXPECT_EQ(machine_.run(1).targets.at(0).processes, 1U);
    EXPECT_EQ(windows(), 1U) << "from the beginning";
}

// The pages of whoever cannot be told a target must not get the first one.
TEST_F(BalanceReload, WhenProcessesCannotBeReadThoseOfLostTargetsAreDropped) {
    machine_.run(5);
    TieringConfig next = config();
    next.mode = TieringMode::kMove;
    next.targets = {{.name = "another"}};
    machine_.balancer().set_config(next);
    machine_.tree_.remove("proc");
    machine_.balancer().round({});
    EXPECT_EQ(machine_.balancer().status().targets.at(0).processes, 0U);
    EXPECT_EQ(machine_.pages_.moved, 0U);
}

TEST_F(BalanceReload, TiersAreGroupedAnew) {
    machine_.run(10);
    TieringConfig next = config();
    next.mode = TieringMode::kMove;
    // The other way around.
    next.tiers = {{.name = "near", .nodes = {1}}, {.name = "away", .nodes = {0}}};
    machine_.balancer().set_config(next);
    BalanceStatus status = machine_.run(1);
    EXPECT_EQ(status.tiers.at(0).name, "near");
    EXPECT_THAT(status.targets.at(0).pages_by_tier, ElementsAre(MadeUpMachine::kPages - 500, 500));
    // A name alone is a change, too.
    next.tiers[0].name = "dram";
    machine_.balancer().set_config(next);
    EXPECT_EQ(machine_.run(1).tiers.at(0).name, "dram");
}

TEST_F(BalanceReload, TheLastOfSeveralCounts) {
    machine_.run(1);
    TieringConfig next = config();
    int applied = 0;
    next.targets[0].name = "one";
    machine_.balancer().set_config(next, [&] { ++applied; });
    next.targets[0].name = "two";
    machine_.balancer().set_config(next, [&] { ++applied; });
    EXPECT_EQ(machine_.run(1).targets.at(0).name, "two");
    EXPECT_EQ(applied, 2);
}

// While a round takes long.
TEST_F(BalanceReload, StatusIsAnsweredInTheMiddleOfALook) {
    bool asked = false;
    machine_.pages_.on_look = [&] { asked = machine_.balancer().status().rounds == 0; };
    machine_.run(1);
    EXPECT_TRUE(asked);
}

}  // namespace
}  // namespace memtide::agent
