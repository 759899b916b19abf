#include "fabric-manager/model/composition.h"

#include <set>

#include <gtest/gtest.h>

#include "fabric-manager/model/agent.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
constexpr CompositionState kAll[] = {kPending,   kBinding, kOnlining, kOnline, kDraining,
                                     kUnbinding, kErasing, kReleased, kFailed};

TEST(CompositionState, NamesAreReadBack) {
    for (const CompositionState state : kAll) EXPECT_EQ(parse_state(to_string(state)), state);
    EXPECT_EQ(parse_state("online"), std::nullopt);
}

TEST(ObservedState, NamesAreReadBack) {
    using enum ObservedState;
    for (const ObservedState state : {kAbsent, kFound, ObservedState::kOnline, ObservedState::kDraining,
                                      kOffline, ObservedState::kFailed})
        EXPECT_EQ(parse_observed_state(to_string(state)), state);
    EXPECT_EQ(parse_observed_state("Online"), std::nullopt);
}

TEST(CompositionState, NothingFollowsAnEnd) {
    for (const CompositionState end : {kReleased, kFailed})
        for (const CompositionState state : kAll) EXPECT_FALSE(may_follow(end, state));
}

TEST(CompositionState, EveryStateCanReachAnEnd) {
    for (const CompositionState start : kAll) {
        std::set<CompositionState> reached{start};
        for (bool grew = true; grew;) {
            grew = false;
            for (const CompositionState from : std::set(reached))
                for (const CompositionState to : kAll)
                    if (may_follow(from, to)) grew = reached.insert(to).second || grew;
        }
        EXPECT_TRUE(reached.contains(kReleased) || reached.contains(kFailed)) << to_string(start);
    }
}

// Invariant 4: no unbind without a drain before it; invariant 2: no end of a bound one without an erase.
TEST(CompositionState, BoundMemoryGoesBackThroughDrainUnbindErase) {
    EXPECT_FALSE(may_follow(kOnline, kUnbinding));
    EXPECT_FALSE(may_follow(kOnlining, kUnbinding));
    EXPECT_FALSE(may_follow(kOnline, kReleased));
    EXPECT_FALSE(may_follow(kDraining, kReleased));
    EXPECT_FALSE(may_follow(kUnbinding, kReleased));
    EXPECT_TRUE(may_follow(kErasing, kReleased));
}

}  // namespace
}  // namespace memtide::fm
