#include "fabric-manager/model/composition.h"

#include <set>

#include <gtest/gtest.h>

#include "fabric-manager/model/agent.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
constexpr CompositionState kAll[] = {kPending,  kBinding,   kOnlining, kOnline,   kResizing, kDegraded,
                                     kDraining, kUnbinding, kErasing,  kReleased, kFailed};

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
        if (start == kResizing || start == kDegraded) continue;  // of compositions alone
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

// A composition that was online, with parts of 256 MiB in these states.
Composition with_parts(std::vector<CompositionState> states) {
    Composition c;
    c.was_online = true;
    for (const CompositionState state : states) {
        Part part;
        part.number = c.next_part++;
        part.size = kCxlGranule;
        part.state = state;
        part.boot_id = "boot";
        part.release_requested = state == kDraining || state == kUnbinding || state == kErasing;
        c.size += part.size;
        c.parts.push_back(part);
    }
    return c;
}

TEST(CompositionState, OneThatIsBuiltIsAsFarAsItsSlowestPart) {
    Composition c = with_parts({kOnline, kBinding, kOnlining});
    c.was_online = false;
    EXPECT_EQ(state_of(c), kBinding);
    c.parts[1].state = kOnline;
    EXPECT_EQ(state_of(c), kOnlining);
    c.parts[2].state = kOnline;
    EXPECT_EQ(state_of(c), kOnline);
}

TEST(CompositionState, OneThatGrowsOrShrinksIsResizing) {
    Composition grows = with_parts({kOnline, kPending});
    grows.parts[1].boot_id.clear();
    EXPECT_EQ(state_of(grows), kResizing);
    Composition shrinks = with_parts({kOnline, kDraining});
    EXPECT_EQ(state_of(shrinks), kResizing);
    shrinks.parts[1].state = kReleased;
    shrinks.size = kCxlGranule;
    EXPECT_EQ(state_of(shrinks), kOnline);
}

// However far its parts are: who asks for another size meanwhile is not told that it never was online.
TEST(CompositionState, OneThatWasOnlineIsResizingWhateverItsPartsDo) {
    for (const CompositionState old : {kOnlining, kDraining, kUnbinding, kErasing, kReleased})
        for (const CompositionState fresh : {kPending, kBinding, kOnlining}) {
            Composition c = with_parts({old, fresh});
            c.parts[1].boot_id.clear();
            EXPECT_EQ(state_of(c), kResizing) << to_string(old) << ", " << to_string(fresh);
        }
    EXPECT_EQ(state_of(with_parts({kDraining, kFailed})), kResizing);
    Composition exchange = with_parts({kOnline, kOnline});
    exchange.exchange = Exchange{exchange.size, {}, {0}, {1}};
    EXPECT_EQ(state_of(exchange), kResizing);
}

TEST(CompositionState, OneThatLostAllIsDegradedOnlyWhereItIsReplaced) {
    Composition c = with_parts({kFailed, kReleased});
    EXPECT_EQ(state_of(c), kFailed);
    c.placement.reprovide = true;
    EXPECT_EQ(state_of(c), kDegraded);
    c.release_requested = true;
    EXPECT_EQ(state_of(c), kReleased);
}

TEST(CompositionState, HostThatRebootedIsNoResize) {
    EXPECT_EQ(state_of(with_parts({kOnline, kOnlining})), kOnlining);
    EXPECT_EQ(state_of(with_parts({kOnlining, kOnlining})), kOnlining);
}

TEST(CompositionState, OneThatLostAPartIsDegraded) {
    EXPECT_EQ(state_of(with_parts({kOnline, kFailed})), kDegraded);
    EXPECT_EQ(lasting_size(with_parts({kOnline, kFailed})), kCxlGranule);
}

TEST(CompositionState, ReleaseIsOverWhenTheLastPartIs) {
    Composition c = with_parts({kErasing, kDraining, kReleased});
    c.release_requested = true;
    EXPECT_EQ(state_of(c), kDraining);
    c.parts[1].state = kReleased;
    EXPECT_EQ(state_of(c), kErasing);
    c.parts[0].state = kReleased;
    EXPECT_EQ(state_of(c), kReleased);
    c.failed = true;
    EXPECT_EQ(state_of(c), kFailed);
}

// In the middle of a growth or an exchange: it was Resizing, and Binding would look like a new beginning.
TEST(CompositionState, OneThatWasOnlineDrainsFromItsReleaseOn) {
    for (const CompositionState fresh : {kPending, kBinding}) {
        for (const CompositionState old : {kDraining, kUnbinding, kErasing, kReleased}) {
            Composition c = with_parts({old, fresh});
            c.release_requested = true;
            EXPECT_EQ(state_of(c), kDraining) << to_string(old) << ", " << to_string(fresh);
            c.release_requested = false;
            c.failed = true;
            EXPECT_EQ(state_of(c), kDraining) << to_string(old) << ", " << to_string(fresh);
        }
    }
    Composition never = with_parts({kPending, kBinding});
    never.was_online = false;
    never.release_requested = true;
    EXPECT_EQ(state_of(never), kPending);
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
