#include "fabric-manager/rest/agent_contacts.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

using Clock = AgentContacts::Clock;

TEST(AgentContacts, AHostThatNeverCalledIsNotConnected) {
    EXPECT_FALSE(AgentContacts().connected(HostId("host0")));
}

TEST(AgentContacts, AHostStaysConnectedForAWhileAfterACall) {
    AgentContacts contacts;
    const Clock::time_point now = Clock::now();
    contacts.touch(HostId("host0"), now);
    EXPECT_TRUE(contacts.connected(HostId("host0"), now + AgentContacts::kGrace));
    EXPECT_FALSE(
        contacts.connected(HostId("host0"), now + AgentContacts::kGrace + std::chrono::milliseconds(1)));
    EXPECT_FALSE(contacts.connected(HostId("host1"), now));
}

TEST(AgentContacts, OneThatIsAwayIsSoSinceItsLastCall) {
    AgentContacts contacts;
    const auto now = Clock::now();
    EXPECT_FALSE(contacts.away_since(HostId("host0"), now));
    contacts.touch(HostId("host0"), now);
    EXPECT_FALSE(contacts.away_since(HostId("host0"), now));
    EXPECT_TRUE(contacts.away_since(HostId("host0"), now + 2 * AgentContacts::kGrace));
}

TEST(AgentContacts, AnOpenPollIsAConnectionHoweverLongItLasts) {
    AgentContacts contacts;
    const auto later = Clock::now() + std::chrono::hours(1);
    {
        const AgentContacts::Poll poll(contacts, HostId("host0"));
        EXPECT_TRUE(contacts.connected(HostId("host0"), later));
    }
    EXPECT_FALSE(contacts.connected(HostId("host0"), later));
}

}  // namespace
}  // namespace memtide::fm
