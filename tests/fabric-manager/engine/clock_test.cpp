// Leases and deadlines while somebody sets the clock.
#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using enum CompositionState;
using namespace std::chrono_literals;

class Clock : public testing::Test {
  protected:
    Clock() {
        rig_.config.wall_clock = [this] { return std::chrono::system_clock::now() + offset_; };
        rig_.fabric->add_mld(2, {1, 1});
    }
    CompositionId lease(std::chrono::seconds ttl) {
        CompositionRequest request;
        request.host = HostId("host0");
        request.size = kCxlGranule;
        request.ttl = ttl;
        const Outcome<Created> created = rig_.run(rig_.manager->create(std::move(request), std::nullopt));
        EXPECT_TRUE(created);
        EXPECT_TRUE(rig_.reaches(created->composition.id, kOnline));
        return created->composition.id;
    }
    // Whatever deadline has come is acted upon.
    void let_pass() {
        (void)lease(3600s);  // wakes the one that watches
        rig_.settle();
    }

    std::chrono::seconds offset_{0};
    Rig rig_;
};

TEST_F(Clock, SetAheadEndsNoLease) {
    rig_.start_ready();
    const CompositionId id = lease(3600s);
    offset_ = 48h;
    let_pass();
    EXPECT_EQ(rig_.get(id).state, kOnline);
    EXPECT_FALSE(rig_.has_event("composition.expired"));
    EXPECT_TRUE(rig_.has_event("clock.set", "ahead by 1728"));
}

TEST_F(Clock, SetBackProlongsNoLease) {
    rig_.start_ready();
    const CompositionId id = lease(1s);
    offset_ = -48h;
    EXPECT_TRUE(rig_.reaches(id, kReleased));
    EXPECT_TRUE(rig_.has_event("composition.expired"));
    EXPECT_EQ(rig_.wrong(), kNone);
}

TEST_F(Clock, LeaseThatIsRenewedDoesNotEndAtItsOldTime) {
    rig_.start_ready();
    const CompositionId id = lease(1s);
    CompositionChangeRequest change;
    change.ttl = 3600s;
    ASSERT_TRUE(rig_.run(rig_.manager->change(id, std::move(change))));
    const auto over = std::chrono::steady_clock::now() + 1200ms;
    ASSERT_TRUE(rig_.run_until([&] { return std::chrono::steady_clock::now() > over; }));
    EXPECT_EQ(rig_.get(id).state, kOnline);
}

TEST_F(Clock, DrainIsOverdueWhenItsTimeHasPassedWhateverTheClockSays) {
    rig_.config.timing.drain_deadline = Milliseconds(200);
    rig_.start_ready();
    const CompositionId id = lease(3600s);
    rig_.agents[0]->refuses_to_let_go = true;
    ASSERT_TRUE(rig_.release(id));
    offset_ = -48h;
    EXPECT_TRUE(rig_.run_until([&] { return rig_.has_event("composition.drain-overdue"); }));
}

TEST_F(Clock, LeaseThatRanOutWhileNoManagerRanEndsAtTheStart) {
    rig_.start_ready();
    const CompositionId id = lease(3600s);
    rig_.stop();
    offset_ = 2h;
    rig_.start_ready();
    EXPECT_TRUE(rig_.reaches(id, kReleased));
    EXPECT_TRUE(rig_.has_event("composition.expired"));
}

TEST_F(Clock, StartWithAClockBehindTheJournalGoesByTheJournal) {
    rig_.start_ready();
    const CompositionId id = lease(2s);
    rig_.stop();
    offset_ = -48h;
    rig_.start_ready();
    EXPECT_TRUE(rig_.reaches(id, kReleased));
    EXPECT_EQ(rig_.wrong(), kNone);
}

}  // namespace
}  // namespace memtide::fm
