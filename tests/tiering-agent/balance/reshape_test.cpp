// Huge pages of which few parts are touched.
#include <gtest/gtest.h>

#include "tests/tiering-agent/balance/made_up_machine.h"

namespace memtide::agent {
namespace {

constexpr std::uint64_t kGroups = MadeUpMachine::kPages / kPagesPerHuge;

// Four huge pages, each with a hot part; the first of them is in the faster tier, which has no room for more.
class Reshape : public testing::Test {
  protected:
    Reshape() {
        machine_.put_process(MadeUpMachine::kPid, "worker", kPagesPerHuge, 0, 0);
        for (std::uint64_t group = 0; group < kGroups; ++group) {
            machine_.pages_.of[MadeUpMachine::kPid][group * kPagesPerHuge + 7].is_hot = true;
            machine_.pages_.huge[MadeUpMachine::kPid].insert(group);
        }
        machine_.options_.config.targets[0].huge_pages = HugePageRule::kSplit;
    }
    [[nodiscard]] std::size_t whole() { return machine_.pages_.huge[MadeUpMachine::kPid].size(); }
    MadeUpMachine machine_;
};

TEST_F(Reshape, HotPartsHaveThePlaceThatColdOnesTook) {
    const BalanceStatus status = machine_.run(120);
    EXPECT_EQ(machine_.pages_.hot_and_fast(MadeUpMachine::kPid), kGroups);
    EXPECT_EQ(whole(), 0U);
    EXPECT_EQ(status.targets.at(0).split_huge, kGroups);
    EXPECT_EQ(status.targets.at(0).joined_huge, 0U);
}

TEST_F(Reshape, OnlyWhereTheTargetWantsIt) {
    machine_.options_.config.targets[0].huge_pages = HugePageRule::kKeep;
    machine_.run(120);
    EXPECT_EQ(whole(), kGroups);
}

TEST_F(Reshape, NotWhereThereIsRoomForAll) {
    machine_.tree_.put("proc/zoneinfo",
                       "Node 0, zone Normal\n  pages free 3000\n        high 0\n"
                       "Node 1, zone Normal\n  pages free 8000\n        high 0\n");
    machine_.run(120);
    EXPECT_EQ(whole(), kGroups);
    EXPECT_EQ(machine_.pages_.hot_and_fast(MadeUpMachine::kPid), kGroups) << "as huge pages";
}

TEST_F(Reshape, ObservingSplitsNothing) {
    machine_.options_.config.mode = TieringMode::kObserve;
    machine_.run(120);
    EXPECT_EQ(whole(), kGroups);
}

TEST_F(Reshape, WhereItIsForbiddenItIsTriedOnce) {
    machine_.pages_.can_split = false;
    const BalanceStatus status = machine_.run(120);
    EXPECT_EQ(whole(), kGroups);
    EXPECT_EQ(status.targets.at(0).split_huge, 0U);
}

}  // namespace
}  // namespace memtide::agent
