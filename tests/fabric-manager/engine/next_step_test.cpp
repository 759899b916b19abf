#include "fabric-manager/engine/next_step.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

using enum CompositionState;
using enum ActionKind;

constexpr CompositionState kStates[] = {kPending, kBinding,  kOnlining,
                                        kOnline,  kDraining, kUnbinding,
                                        kErasing, kReleased, CompositionState::kFailed};
constexpr VppbView kVppbs[] = {VppbView::kUnknown, VppbView::kFree, VppbView::kOurs, VppbView::kOther,
                               VppbView::kBusy};

class NextStep : public ::testing::Test {
  protected:
    NextStep() {
        c.size = mebibytes(256);
        c.serial = SerialNumber{7};
        c.offline_revision = 10;
        c.boot_id = "boot-1";
        fabric.known = true;
        fabric.device_present = true;
        fabric.ld_size = c.size;
        fabric.ld_clean = true;
        fabric.gone_for_long = true;
        fabric.vppb = VppbView::kFree;
    }
    ActionKind next(CompositionState state) {
        c.state = state;
        return next_step({HostId("host0")}, c, fabric, agent).kind;
    }
    void agent_says(ObservedState state, std::uint64_t revision = 10) {
        agent.reported = true;
        agent.boot_id = "boot-1";
        agent.revision_seen = revision;
        ObservedRegion seen;
        seen.serials = {c.serial};
        seen.state = state;
        seen.node = 1;
        seen.online_bytes = c.size;
        agent.region = seen;
        agent.asked_online = true;
        agent.region_size = c.size;
    }
    std::string reason(CompositionState state) {
        c.state = state;
        const Action action = next_step({HostId("host0")}, c, fabric, agent);
        return action.reason ? action.reason->code : "";
    }

    Part c;
    SwitchView fabric;
    AgentView agent;
};

TEST_F(NextStep, PendingErasesAllocatesAndBinds) {
    EXPECT_EQ(next(kPending), kBind);
    fabric.ld_clean = false;
    EXPECT_EQ(next(kPending), kEraseBeforeBind);
    c.carve = Carve{};
    EXPECT_EQ(next(kPending), kAllocate);
    c.carve->done = true;
    EXPECT_EQ(next(kPending), kEraseBeforeBind);
}

TEST_F(NextStep, PendingNeverBindsWhatIsTaken) {
    fabric.ld_elsewhere = true;
    EXPECT_EQ(reason(kPending), "taken");
    fabric.ld_elsewhere = false;
    fabric.vppb = VppbView::kOther;
    EXPECT_EQ(reason(kPending), "taken");
    fabric.vppb = VppbView::kUnknown;
    EXPECT_EQ(reason(kPending), "vppb-gone");
    fabric.vppb = VppbView::kFree;
    fabric.ld_size = mebibytes(512);
    EXPECT_EQ(reason(kPending), "allocation-changed");
}

TEST_F(NextStep, BindingIsDecidedByWhatTheSwitchShows) {
    EXPECT_EQ(next(kBinding), kBind);
    fabric.ld_clean = false;
    EXPECT_EQ(next(kBinding), kEraseBeforeBind)
        << "the switch was connected to anew, or a bind was begun in vain";
    fabric.ld_clean = true;
    fabric.vppb = VppbView::kBusy;
    EXPECT_EQ(next(kBinding), kAwaitBackground);
    fabric.vppb = VppbView::kOurs;
    EXPECT_EQ(next(kBinding), kEnterOnlining);
    fabric.vppb = VppbView::kOther;
    EXPECT_EQ(reason(kBinding), "taken");
}

TEST_F(NextStep, ReleaseIsPossibleFromEveryState) {
    c.release_requested = true;
    EXPECT_EQ(next(kPending), kRelease);
    EXPECT_EQ(next(kBinding), kRelease);
    fabric.vppb = VppbView::kBusy;
    EXPECT_EQ(next(kBinding), kAwaitBackground);
    fabric.vppb = VppbView::kOurs;
    EXPECT_EQ(next(kBinding), kStartDrain);
    EXPECT_EQ(next(kOnlining), kStartDrain);
    EXPECT_EQ(next(kOnline), kStartDrain);
}

TEST_F(NextStep, OnlineIsWhatTheAgentSaysOfTheRightSerialNumber) {
    fabric.vppb = VppbView::kOurs;
    EXPECT_EQ(next(kOnlining), kAwaitAgentOnline);
    for (const ObservedState state :
         {ObservedState::kAbsent, ObservedState::kFound, ObservedState::kFailed}) {
        agent_says(state);
        EXPECT_EQ(next(kOnlining), kAwaitAgentOnline);
    }
    agent_says(ObservedState::kOnline);
    EXPECT_EQ(next(kOnlining), kBecomeOnline);
    agent.region->serials = {SerialNumber{8}};
    EXPECT_EQ(next(kOnlining), kAwaitAgentOnline);
}

TEST_F(NextStep, OnlineStaysUntilTheAgentSaysOtherwise) {
    fabric.vppb = VppbView::kOurs;
    EXPECT_EQ(next(kOnline), kNothing);
    agent_says(ObservedState::kOnline);
    EXPECT_EQ(next(kOnline), kNothing);
    agent.region.reset();
    EXPECT_EQ(next(kOnline), kNothing);
    agent.boot_id = "boot-2";
    EXPECT_EQ(next(kOnline), kReenterOnlining);
    agent_says(ObservedState::kFound);
    EXPECT_EQ(next(kOnline), kReenterOnlining);
}

TEST_F(NextStep, VanishedMemoryFailsWhereAHostHadIt) {
    for (const CompositionState state : {kOnlining, kOnline}) {
        fabric.vppb = VppbView::kFree;
        EXPECT_EQ(reason(state), "device-vanished");
        fabric.vppb = VppbView::kOurs;
        fabric.device_present = false;
        EXPECT_EQ(reason(state), "device-vanished");
        fabric.device_present = true;
    }
    EXPECT_EQ(next(kDraining), kAwaitAgentOffline);
    fabric.vppb = VppbView::kFree;
    EXPECT_EQ(next(kDraining), kEnterErasing);
}

TEST_F(NextStep, MemoryThatIsMissedForTheFirstTimeMayComeBack) {
    fabric.gone_for_long = false;
    for (const CompositionState state : {kOnlining, kOnline, kErasing}) {
        fabric.vppb = VppbView::kFree;
        fabric.device_present = false;
        EXPECT_EQ(next(state), kAwaitSwitch);
        EXPECT_TRUE(is_missing(c, fabric));
    }
    fabric.device_present = true;
    EXPECT_FALSE(is_missing(c, fabric)) << "unbound is how it shall be when it is erased";
}

TEST_F(NextStep, OnlineNeedsANodeAndMemoryOnIt) {
    fabric.vppb = VppbView::kOurs;
    agent_says(ObservedState::kOnline);
    agent.region->node.reset();
    EXPECT_EQ(next(kOnlining), kAwaitAgentOnline);
    agent_says(ObservedState::kOnline);
    agent.region->online_bytes = Bytes{};
    EXPECT_EQ(next(kOnlining), kAwaitAgentOnline);
    agent.region->online_bytes = c.size + kCxlGranule;
    EXPECT_EQ(next(kOnlining), kAwaitAgentOnline);
    agent.region->online_bytes = mebibytes(128);
    EXPECT_EQ(next(kOnlining), kBecomeOnline) << "the host's blocks may be larger than what is left of it";
}

TEST_F(NextStep, DoubtAboutTheSwitchIsNotTakenForVanishedMemory) {
    fabric = SwitchView{};
    agent_says(ObservedState::kOnline);
    EXPECT_EQ(next(kOnlining), kBecomeOnline);
    EXPECT_EQ(next(kOnline), kNothing);
}

TEST_F(NextStep, UnbindWaitsForTheAgentToLetGo) {
    fabric.vppb = VppbView::kOurs;
    EXPECT_EQ(next(kDraining), kAwaitAgentOffline);
    for (const ObservedState state :
         {ObservedState::kOnline, ObservedState::kDraining, ObservedState::kFound, ObservedState::kFailed}) {
        agent_says(state);
        EXPECT_EQ(next(kDraining), kAwaitAgentOffline) << to_string(state);
    }
    for (const ObservedState state : {ObservedState::kOffline, ObservedState::kAbsent}) {
        agent_says(state, 9);
        EXPECT_EQ(next(kDraining), kAwaitAgentOffline) << "a report from before it was asked";
        agent_says(state, 10);
        EXPECT_EQ(next(kDraining), kUnbind);
    }
}

TEST_F(NextStep, ForceDoesNotWait) {
    fabric.vppb = VppbView::kOurs;
    c.forced = true;
    agent_says(ObservedState::kOnline);
    EXPECT_EQ(next(kDraining), kUnbind);
}

TEST_F(NextStep, UnbindingAndErasingFollowTheSwitch) {
    fabric.vppb = VppbView::kOurs;
    EXPECT_EQ(next(kUnbinding), kUnbind);
    EXPECT_EQ(reason(kErasing), "taken");
    fabric.vppb = VppbView::kBusy;
    EXPECT_EQ(next(kUnbinding), kAwaitBackground);
    fabric.vppb = VppbView::kFree;
    EXPECT_EQ(next(kUnbinding), kEnterErasing);
    EXPECT_EQ(next(kErasing), kErase);
    fabric.device_present = false;
    EXPECT_EQ(reason(kErasing), "device-vanished");
}

TEST_F(NextStep, FailureUndoesTheCarveFirst) {
    c.reason = Reason{"bind-refused", ""};
    EXPECT_EQ(next(kBinding), kFail);
    c.carve = Carve{{}, {}, true};
    EXPECT_EQ(next(kBinding), kUndoAllocate);
    EXPECT_EQ(next(kPending), kUndoAllocate);
    fabric.known = false;
    EXPECT_EQ(next(kBinding), kAwaitSwitch);
}

TEST_F(NextStep, RefusalToOnlineCountsWhereOtherMemoryDoes) {
    fabric.vppb = VppbView::kOurs;
    agent_says(ObservedState::kFailed);
    c.state = kOnlining;
    c.boot_id.clear();
    CompositionView composition{HostId("host0")};
    EXPECT_EQ(next_step(composition, c, fabric, agent).kind, kAwaitAgentOnline);
    composition.expendable = true;
    const Action action = next_step(composition, c, fabric, agent);
    EXPECT_EQ(action.kind, kOnlineRefused);
    EXPECT_EQ(action.reason->code, "online-refused");
    c.release_requested = true;
    EXPECT_EQ(next_step(composition, c, fabric, agent).kind, kStartDrain);
}

// Every combination of what can be: nothing that must never happen is ever the next step.
TEST_F(NextStep, NoCombinationBreaksAnInvariant) {
    int combinations = 0;
    for (const CompositionState state : kStates)
        for (const VppbView vppb : kVppbs)
            for (int bits = 0; bits < 1024; ++bits)
                for (int observed = -1; observed < 6; ++observed) {
                    const auto bit = [&](int n) { return (bits >> n & 1) != 0; };
                    c.state = state;
                    fabric.vppb = vppb;
                    fabric.known = bit(0);
                    fabric.device_present = bit(1);
                    fabric.ld_clean = bit(2);
                    fabric.ld_elsewhere = bit(3);
                    c.release_requested = bit(4);
                    c.forced = bit(4) && bit(5);
                    c.reason = bit(6) && (state == kPending || state == kBinding)
                                   ? std::optional(Reason{"x", "y"})
                                   : std::nullopt;
                    c.carve = bit(7) ? std::optional(Carve{{}, {}, bit(8)}) : std::nullopt;
                    agent = AgentView{};
                    if (observed >= 0) agent_says(static_cast<ObservedState>(observed));
                    const Action action = next_step({HostId("host0"), bit(9)}, c, fabric, agent);
                    const ActionKind kind = action.kind;
                    ++combinations;
                    if (is_end(state)) {
                        ASSERT_EQ(kind, kNothing);
                    }
                    const bool effect = kind == kBind || kind == kUnbind || kind == kErase ||
                                        kind == kEraseBeforeBind || kind == kAllocate ||
                                        kind == kUndoAllocate || kind == kAwaitBackground;
                    if (effect) {
                        ASSERT_TRUE(fabric.known);
                    }
                    if (kind == kBind) {
                        ASSERT_EQ(vppb, VppbView::kFree);
                        ASSERT_FALSE(fabric.ld_elsewhere || c.release_requested);
                        ASSERT_TRUE(state == kBinding || fabric.ld_clean);
                    }
                    if (kind == kUnbind && state == kDraining) {
                        ASSERT_TRUE(c.forced || observed == static_cast<int>(ObservedState::kOffline) ||
                                    observed == static_cast<int>(ObservedState::kAbsent));
                    }
                    if (kind == kErase || kind == kEraseBeforeBind) {
                        ASSERT_TRUE(vppb != VppbView::kOurs && !fabric.ld_elsewhere && fabric.device_present);
                    }
                    if (kind == kOnlineRefused) {
                        ASSERT_TRUE(state == kOnlining && bit(9) && !c.release_requested);
                    }
                    if (kind == kFail || kind == kOnlineRefused) {
                        ASSERT_TRUE(action.reason);
                    }
                    const bool waits = kind == kAwaitSwitch || kind == kAwaitBackground ||
                                       kind == kAwaitAgentOnline || kind == kAwaitAgentOffline;
                    ASSERT_EQ(waits, !action.waiting_for.empty());
                }
    EXPECT_EQ(combinations, 9 * 5 * 1024 * 7);
}

}  // namespace
}  // namespace memtide::fm
