#include <gtest/gtest.h>

#include "tiering-agent/policy/targets.h"

namespace memtide::agent {
namespace {

Vma vma(VmaKind kind, bool writable = true, bool is_private = true) {
    return {.range = {0x1000, 0x200000},
            .kind = kind,
            .readable = true,
            .writable = writable,
            .is_private = is_private,
            .flags = VmaFlags{},
            .policy = "default"};
}
std::optional<StayReason> reason(const Vma& one, const TieringTarget& target = {}) {
    const auto stay = why_it_stays(one, target);
    return stay ? std::optional(stay->reason) : std::nullopt;
}

TEST(Movable, MemoryOfTheProcessItself) {
    for (const VmaKind kind :
         {VmaKind::kAnonymous, VmaKind::kHeap, VmaKind::kStack, VmaKind::kShared, VmaKind::kFile})
        EXPECT_EQ(reason(vma(kind)), std::nullopt) << to_string(kind);
    EXPECT_EQ(reason(vma(VmaKind::kShared, true, false)), std::nullopt);
}

TEST(Movable, NotFilesThatOthersMayMap) {
    EXPECT_EQ(reason(vma(VmaKind::kFile, false, true)), StayReason::kFile);
    EXPECT_EQ(reason(vma(VmaKind::kFile, true, false)), StayReason::kFile);
}

TEST(Movable, NotWhatTheWorkloadOrTheKernelWantsWhereItIs) {
    EXPECT_EQ(reason(vma(VmaKind::kSpecial)), StayReason::kSpecial);
    EXPECT_EQ(reason(vma(VmaKind::kDevice)), StayReason::kDevice);
    auto one = vma(VmaKind::kAnonymous);
    one.flags = VmaFlags{.device_memory = true};
    EXPECT_EQ(reason(one), StayReason::kDevice);
    one.flags = VmaFlags{.hugetlb = true};
    EXPECT_EQ(reason(one), StayReason::kHugetlb);
    one.flags = VmaFlags{.locked = true};
    EXPECT_EQ(reason(one), StayReason::kLocked);
    one.flags = VmaFlags{};
    one.policy = "bind:1";
    EXPECT_EQ(reason(one), StayReason::kOwnPolicy);
    EXPECT_EQ(explain({StayReason::kOwnPolicy}, one, {}), "has a memory policy of its own (bind:1)");
}

TEST(Movable, NotWhatWasNotLookedAt) {
    auto one = vma(VmaKind::kAnonymous);
    one.policy.reset();
    EXPECT_EQ(reason(one), StayReason::kNotLookedAt);
    one = vma(VmaKind::kAnonymous);
    one.flags.reset();
    EXPECT_EQ(reason(one), StayReason::kNotLookedAt);
    // Looking would not change the answer.
    one = vma(VmaKind::kDevice);
    one.flags.reset();
    EXPECT_EQ(reason(one), StayReason::kDevice);
}

TEST(Movable, NotWhatTheTargetExcludes) {
    const TieringTarget target{.name = "redis",
                               .exclude = {{.kinds = {VmaKind::kStack}},
                                           {.at_most = gibibytes(1), .locked = true},
                                           {.kinds = {VmaKind::kHeap}, .at_least = mebibytes(1)}}};
    EXPECT_EQ(reason(vma(VmaKind::kAnonymous), target), std::nullopt);
    const auto heap = vma(VmaKind::kHeap);
    const auto stay = why_it_stays(heap, target);
    ASSERT_TRUE(stay.has_value());
    EXPECT_EQ(*stay, (Stay{StayReason::kExcluded, 2}));
    EXPECT_EQ(explain(*stay, heap, target), "target \"redis\" excludes it (kind heap, at least 1MiB)");
    EXPECT_EQ(reason(vma(VmaKind::kStack), target), StayReason::kExcluded);
}

TEST(Movable, EveryReasonHasASentence) {
    for (const StayReason each :
         {StayReason::kSpecial, StayReason::kDevice, StayReason::kHugetlb, StayReason::kLocked,
          StayReason::kOwnPolicy, StayReason::kFile, StayReason::kExcluded, StayReason::kNotLookedAt})
        EXPECT_GT(explain({each, 7}, Vma{}, {}).size(), 5U);
}

}  // namespace
}  // namespace memtide::agent
