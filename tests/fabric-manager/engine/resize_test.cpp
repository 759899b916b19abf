// PATCH: growing, shrinking, leases, labels, preconditions.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;

bool is_online_with(Rig& rig, const CompositionId& id, std::uint64_t units) {
    return rig.run_until([&] {
        const Composition c = rig.get(id);
        return c.state == kOnline && held_size(c) == kCxlGranule * units;
    });
}

TEST(Resize, GrowingAddsAPartWhileTheRestStaysOnline) {
    Rig rig;
    rig.fabric->add_mld(2, {2, 0, 0}, 6);
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    const Outcome<Composition> grown = rig.resize(c.id, 5);
    ASSERT_TRUE(grown);
    EXPECT_EQ(grown->state, kResizing);
    EXPECT_EQ(grown->parts[0].state, kOnline);
    ASSERT_TRUE(is_online_with(rig, c.id, 5));
    EXPECT_EQ(rig.fabric->calls["unbind"], 0);
    rig.released(c.id);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Resize, ShrinkingDrainsFirst) {
    Rig rig;
    rig.fabric->add_mld(2, {2, 0, 0}, 6);
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    ASSERT_TRUE(rig.resize(c.id, 3));
    ASSERT_TRUE(is_online_with(rig, c.id, 3));
    rig.agents[0]->refuses_to_let_go = true;
    ASSERT_TRUE(rig.resize(c.id, 2));
    rig.run_until([n = 0]() mutable { return ++n > 50; });
    EXPECT_EQ(rig.get(c.id).state, kResizing);
    EXPECT_EQ(rig.fabric->calls["unbind"], 0);
    rig.agents[0]->refuses_to_let_go = false;
    rig.report(*rig.agents[0]);
    ASSERT_TRUE(is_online_with(rig, c.id, 2));
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Resize, OnePieceShrinksByASmallerOneInExchange) {
    Rig rig;
    rig.fabric->add_mld(2, {4, 0, 0}, 2);
    rig.start_ready();
    const Composition c = rig.online("host0", 4);
    ASSERT_TRUE(rig.resize(c.id, 2));
    EXPECT_TRUE(is_online_with(rig, c.id, 2));
    EXPECT_EQ(rig.manager->pool().free, kCxlGranule * 4);
    EXPECT_EQ(rig.wrong(), kNone);
}

TEST(Resize, ShrinkWithoutMemoryForTheExchangeIsRefusedAndNamesTheSizesThatCanBe) {
    Rig rig;
    rig.fabric->add_mld(2, {4});
    rig.start_ready();
    const Composition c = rig.online("host0", 4);
    const Outcome<Composition> shrunk = rig.resize(c.id, 2);
    ASSERT_FALSE(shrunk);
    EXPECT_EQ(shrunk.error().code, problem::kCannotShrink);
    EXPECT_EQ(rig.get(c.id).state, kOnline);
    EXPECT_EQ(rig.get(c.id).size, kCxlGranule * 4);
}

TEST(Resize, GrowthThatFailsGoesBackToTheOldSize) {
    Rig rig;
    rig.fabric->add_mld(2, {2, 0}, 2);
    rig.start_ready();
    const Composition c = rig.online("host0", 2);
    rig.fabric->fault = [](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
        if (command != "bind" || when != FakeSwitch::When::kBefore) return std::nullopt;
        return Error{ErrorCode::kInvalidArgument, "no"};
    };
    ASSERT_TRUE(rig.resize(c.id, 3));
    ASSERT_TRUE(rig.run_until([&] { return rig.has_event("composition.resize-failed"); }));
    EXPECT_TRUE(is_online_with(rig, c.id, 2));
    EXPECT_EQ(rig.get(c.id).size, kCxlGranule * 2);
    EXPECT_EQ(rig.wrong(), kNone);
}

// States as a client sees them from the answer to its DELETE on.
std::vector<std::string> states_after(Rig& rig, const CompositionId& id, std::uint64_t event) {
    std::vector<std::string> states;
    for (const Event& one : rig.events())
        if (one.id > event && one.type == "composition.state" && one.composition == id)
            states.push_back(one.state);
    return states;
}

// One state after the other, each at most once.
bool is_way_back(const std::vector<std::string>& states) {
    const std::vector<std::string> way{"Draining", "Unbinding", "Erasing", "Released"};
    auto next = way.begin();
    return std::ranges::all_of(states, [&](const std::string& one) {
        next = std::find(next, way.end(), one);
        return next != way.end() && next++ != way.end();
    });
}

// At every moment of a growth and of an exchange.
TEST(Resize, ReleasedInTheMiddleItDrainsFromTheAnswerOn) {
    for (const std::uint64_t units : {6, 2})
        for (int turns = 0; turns < 24; turns += 3) {
            Rig rig;
            rig.fabric->background_polls = 1;
            rig.fabric->add_mld(2, {4, 0, 0}, 4);
            rig.start_ready();
            const CompositionId id = rig.online("host0", 4).id;
            ASSERT_TRUE(rig.resize(id, units));
            rig.run_until([&, n = 0]() mutable { return ++n > turns; });
            const Outcome<Composition> answer = rig.release(id);
            ASSERT_TRUE(answer);
            EXPECT_EQ(answer->state, kDraining) << units << ", " << turns;
            const std::uint64_t answered = rig.manager->last_event();
            ASSERT_TRUE(rig.reaches(id, kReleased));
            EXPECT_TRUE(is_way_back(states_after(rig, id, answered))) << units << ", " << turns;
            EXPECT_EQ(rig.wrong(), kNone);
        }
}

TEST(Resize, OneThatIsOnItsWayOutIsNotResizedToTheSizeThatItHasEither) {
    Rig rig;
    rig.fabric->add_mld(2, {4});
    rig.start_ready();
    const CompositionId id = rig.online("host0", 4).id;
    rig.agents[0]->refuses_to_let_go = true;
    ASSERT_TRUE(rig.release(id));
    for (const std::uint64_t units : {4, 2}) {
        const auto refused = rig.resize(id, units);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, problem::kNotOnline);
    }
}

TEST(Resize, OneThatNeverWasOnlineIsNotResized) {
    Rig rig;
    rig.fabric->add_mld(2, {2, 2});
    rig.agents[0]->enabled = false;
    rig.start_ready();
    const CompositionId id = rig.create("host0", 2)->composition.id;
    ASSERT_TRUE(rig.reaches(id, kOnlining));
    EXPECT_EQ(rig.resize(id, 4).error().code, problem::kNotOnline);
    EXPECT_EQ(rig.resize(CompositionId("c-none"), 4).error().code, problem::kUnknownComposition);
}

TEST(Resize, OfTwoThatSawTheSameRevisionOneWins) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 0, 0, 0}, 6);
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    const auto same = [revision = c.revision](std::uint64_t now) { return now == revision; };
    EXPECT_TRUE(rig.resize(c.id, 2, same));
    EXPECT_EQ(rig.resize(c.id, 3, same).error().code, problem::kPreconditionFailed);
    EXPECT_EQ(rig.run(rig.manager->release(c.id, false, same)).error().code, problem::kPreconditionFailed);
    EXPECT_TRUE(is_online_with(rig, c.id, 2));
}

TEST(Resize, LeaseIsRenewedAndEnded) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    CompositionChangeRequest lease;
    lease.ttl = std::chrono::seconds(3600);
    lease.labels = std::map<std::string, std::string>{{"app", "redis"}};
    const Outcome<Composition> leased = rig.run(rig.manager->change(c.id, lease));
    ASSERT_TRUE(leased);
    EXPECT_EQ(leased->ttl, std::chrono::seconds(3600));
    ASSERT_TRUE(leased->expires);
    EXPECT_EQ(leased->labels.at("app"), "redis");
    CompositionChangeRequest none;
    none.ttl = std::chrono::seconds(0);
    const Outcome<Composition> ended = rig.run(rig.manager->change(c.id, none));
    EXPECT_FALSE(ended->ttl || ended->expires);
    EXPECT_EQ(ended->labels.at("app"), "redis");
}

TEST(Resize, RenewedLeaseOutlivesItsFirstEnd) {
    Rig rig;
    rig.fabric->add_mld(2, {1});
    rig.start_ready();
    CompositionRequest request;
    request.host = HostId("host0");
    request.size = kCxlGranule;
    request.ttl = std::chrono::seconds(1);
    const CompositionId id = rig.run(rig.manager->create(request, std::nullopt))->composition.id;
    CompositionChangeRequest renewal;
    renewal.ttl = std::chrono::seconds(2);
    const Time first_end = *rig.get(id).expires;
    ASSERT_TRUE(rig.run(rig.manager->change(id, renewal)));
    rig.run_until([&] { return std::chrono::system_clock::now() > first_end + Milliseconds(200); });
    EXPECT_FALSE(rig.get(id).release_requested);
    EXPECT_TRUE(rig.reaches(id, kReleased));
}

TEST(Resize, RecordDoesNotGrowWithEveryResize) {
    Rig rig;
    rig.fabric->add_mld(2, {1, 0, 0}, 3);
    rig.start_ready();
    const Composition c = rig.online("host0", 1);
    for (int i = 0; i < 6; ++i) {
        ASSERT_TRUE(rig.resize(c.id, 2));
        ASSERT_TRUE(is_online_with(rig, c.id, 2));
        ASSERT_TRUE(rig.resize(c.id, 1));
        ASSERT_TRUE(is_online_with(rig, c.id, 1));
    }
    EXPECT_LE(rig.get(c.id).parts.size(), 3u);
    EXPECT_EQ(rig.wrong(), kNone);
}

}  // namespace
}  // namespace memtide::fm
