#include "cxl-emul/hosts/host_model.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

using namespace std::chrono_literals;
using Use = HostModel::Use;
using Arrival = HostModel::Arrival;
using Removal = HostModel::Removal;

constexpr SerialNumber kSerial{0x1001};

class HostModelTest : public testing::Test {
  protected:
    HostModel host(HostDelays delays = {}) { return {HostId("host0"), delays, 1, ledger_}; }
    PluggedDevice device() { return {kSerial, media_, mebibytes(256), mebibytes(256)}; }
    static WantedState wanted(bool online, std::uint64_t revision = 1) {
        return {revision, {{CompositionId("c-1"), 0, {kSerial}, mebibytes(256), online}}};
    }
    static boost::json::value report_of(const HostModel& host) {
        return boost::json::parse(host.observed()).at("regions").at(0);
    }
    // A host that has the device online.
    HostModel online() {
        HostModel one = host();
        one.plug(device(), Arrival::kFresh);
        one.want(wanted(true));
        one.advance(now_);
        EXPECT_EQ(one.use_of(kSerial), Use::kOnline);
        return one;
    }
    void expect_violation(const char* kind) {
        ASSERT_EQ(ledger_.violation_count(), 1U);
        EXPECT_EQ(ledger_.violations()[0].kind, kind);
    }

    Ledger ledger_;
    std::shared_ptr<MemoryMedia> media_ = std::make_shared<MemoryMedia>("dev", gibibytes(1));
    HostModel::Time now_{1h};
};

TEST_F(HostModelTest, BringsOnlineWhatIsWantedAndReportsIt) {
    HostModel one = host();
    one.want(wanted(true, 7));
    EXPECT_TRUE(one.advance(now_));
    EXPECT_EQ(report_of(one).at("state"), "absent");
    one.plug(device(), Arrival::kFresh);
    EXPECT_TRUE(one.advance(now_));
    const auto report = report_of(one);
    EXPECT_EQ(report.at("state"), "online");
    EXPECT_EQ(report.at("online_bytes"), mebibytes(256).value);
    EXPECT_EQ(boost::json::parse(one.observed()).at("revision_seen"), 7);
    EXPECT_FALSE(one.advance(now_));
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostModelTest, NewsIsWhatTheManagerWaitsFor) {
    HostModel one = host();
    EXPECT_TRUE(one.has_news()) << "it has never reported";
    one.told();
    one.want(wanted(true));
    EXPECT_TRUE(one.advance(now_));
    EXPECT_FALSE(one.has_news()) << "it cannot do anything yet";
    one.plug(device(), Arrival::kFresh);
    one.advance(now_);
    EXPECT_TRUE(one.has_news()) << "online";
    one.told();
    one.want(wanted(false, 2));
    EXPECT_TRUE(one.has_news()) << "it has seen that it shall let go";
    one.advance(now_);
    one.told();
    one.unplug(kSerial, Removal::kAsked);
    EXPECT_TRUE(one.advance(now_));
    EXPECT_FALSE(one.has_news()) << "gone, as was asked for";
    one.plug(device(), Arrival::kFresh);
    EXPECT_TRUE(one.advance(now_));
    EXPECT_FALSE(one.has_news()) << "back, and nobody wants it";
    one.reboot();
    EXPECT_TRUE(one.has_news());
}

TEST_F(HostModelTest, ARegionOfTwoDevicesIsOnlineWhenBothAre) {
    constexpr SerialNumber kOther{0x1002};
    HostModel one = host();
    one.want({1, {{CompositionId("c-1"), 0, {kSerial, kOther}, mebibytes(512), true}}});
    one.plug(device(), Arrival::kFresh);
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "found");
    one.plug({kOther, media_, mebibytes(512), mebibytes(256)}, Arrival::kFresh);
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "online");
    EXPECT_EQ(report_of(one).at("online_bytes"), mebibytes(512).value);
    one.want({2, {{CompositionId("c-1"), 0, {kSerial, kOther}, mebibytes(512), false}}});
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "offline");
}

TEST_F(HostModelTest, LeavesAloneWhatNobodyWants) {
    HostModel one = host();
    one.plug(device(), Arrival::kFresh);
    one.advance(now_);
    EXPECT_EQ(one.use_of(kSerial), Use::kFound);
}

TEST_F(HostModelTest, TakesItsTimeForBoth) {
    HostModel one = host({.online = *parse_delay("20ms"), .offline = *parse_delay("30ms"), .report = {}});
    one.plug(device(), Arrival::kFresh);
    one.want(wanted(true));
    one.advance(now_);
    EXPECT_EQ(one.use_of(kSerial), Use::kGoingOnline);
    EXPECT_EQ(one.next_due(), now_ + 20ms);
    EXPECT_FALSE(one.advance(now_ + 19ms));
    EXPECT_TRUE(one.advance(now_ + 20ms));
    EXPECT_EQ(one.use_of(kSerial), Use::kOnline);
    one.want(wanted(false));
    one.advance(now_ + 1s);
    EXPECT_EQ(report_of(one).at("state"), "draining");
    EXPECT_TRUE(one.advance(now_ + 1030ms));
    EXPECT_EQ(report_of(one).at("state"), "offline");
    EXPECT_FALSE(one.next_due().has_value());
}

TEST_F(HostModelTest, MemoryThatWasNotErasedIsSeen) {
    {
        HostModel before = online();
        before.want(wanted(false));
        before.advance(now_);
        before.unplug(kSerial, Removal::kAsked);
    }
    EXPECT_EQ(ledger_.violation_count(), 0U);
    HostModel next = host();
    next.plug(device(), Arrival::kFresh);
    expect_violation("not-erased");
}

class HostModelVerifies : public HostModelTest {
  protected:
    static WantedState verified(bool online) {
        WantedState state = wanted(online);
        state.regions[0].samples = 64;
        return state;
    }
    // What a host wrote is still there, and its device says that it is not.
    void soil() {
        HostModel before = online();
        before.want(wanted(false));
        before.advance(now_);
        before.unplug(kSerial, Removal::kAsked);
        media_->ignore_erase(true);
        EraseControl control;
        ASSERT_TRUE(media_->erase(mebibytes(256), mebibytes(256), control).has_value());
    }
};

TEST_F(HostModelVerifies, CleanMemoryIsOnlineAndCalledVerified) {
    HostModel one = host();
    one.plug(device(), Arrival::kFresh);
    one.want(verified(true));
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "online");
    EXPECT_EQ(report_of(one).at("verified_pages"), 64);
}

TEST_F(HostModelVerifies, MemoryThatOnlySeemsErasedIsReportedAndNeverOnline) {
    soil();
    HostModel next = host();
    next.plug(device(), Arrival::kFresh);
    next.want(verified(true));
    EXPECT_TRUE(next.advance(now_));
    EXPECT_EQ(next.use_of(kSerial), Use::kNotErased);
    const auto report = report_of(next);
    EXPECT_EQ(report.at("state"), "failed");
    EXPECT_EQ(report.at("error").at("code"), "not-erased");
    EXPECT_EQ(report.at("not_erased").at(0), boost::json::value(format_serial(kSerial)));
    next.want(verified(false));
    next.advance(now_);
    EXPECT_EQ(report_of(next).at("state"), "offline");
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostModelVerifies, WhoIsNotAskedToLookPutsItOnlineAndThatIsAViolation) {
    soil();
    HostModel next = host();
    next.plug(device(), Arrival::kFresh);
    EXPECT_EQ(ledger_.violation_count(), 0U);
    next.want(wanted(true));
    next.advance(now_);
    expect_violation("not-erased-online");
}

TEST_F(HostModelVerifies, WhatItWroteItselfIsNotHeldAgainstTheMemory) {
    HostModel one = host();
    one.plug(device(), Arrival::kFresh);
    one.want(verified(true));
    one.advance(now_);
    one.unplug(kSerial, Removal::kLinkDown);
    one.plug(device(), Arrival::kLinkUp);
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "online");
}

TEST_F(HostModelTest, ErasedMemoryIsTaken) {
    HostModel before = online();
    before.want(wanted(false));
    before.advance(now_);
    before.unplug(kSerial, Removal::kAsked);
    EraseControl control;
    ASSERT_TRUE(media_->erase(mebibytes(256), mebibytes(256), control).has_value());
    HostModel next = host();
    next.plug(device(), Arrival::kFresh);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostModelTest, AnUnbindUnderOnlineMemoryIsSeen) {
    HostModel one = online();
    one.unplug(kSerial, Removal::kAsked);
    expect_violation("unbound-online");
}

TEST_F(HostModelTest, ASurpriseRemovalOfOnlineMemoryIsNoted) {
    HostModel one = online();
    one.unplug(kSerial, Removal::kSurprise);
    EXPECT_EQ(ledger_.violation_count(), 0U);
    ASSERT_EQ(ledger_.surprises().size(), 1U);
    EXPECT_EQ(ledger_.surprises()[0].serial, kSerial);
}

TEST_F(HostModelTest, AnEraseUnderOnlineMemoryIsSeen) {
    HostModel one = online();
    EraseControl control;
    ASSERT_TRUE(media_->erase({}, gibibytes(1), control).has_value());
    one.want(wanted(false));
    one.advance(now_);
    expect_violation("changed-under-host");
}

TEST_F(HostModelTest, ALinkThatWasDownBringsBackTheHostsOwnMemory) {
    HostModel one = online();
    one.unplug(kSerial, Removal::kLinkDown);
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "absent");
    one.plug(device(), Arrival::kLinkUp);
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "online");
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostModelTest, AfterARebootItKnowsNothingAndHasAnotherBootId) {
    HostModel one = online();
    const std::string before = one.boot_id();
    one.reboot();
    EXPECT_NE(one.boot_id(), before);
    EXPECT_EQ(one.use_of(kSerial), Use::kFound);
    EXPECT_EQ(one.wanted_count(), 0U);
    one.want(wanted(true));
    one.advance(now_);
    EXPECT_EQ(one.use_of(kSerial), Use::kOnline);
}

TEST_F(HostModelTest, RefusingToOnlineIsAReportedFailure) {
    HostModel one = host();
    one.faults().set(HostFault::kRefusesOnline, true);
    one.plug(device(), Arrival::kFresh);
    one.want(wanted(true));
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "failed");
    EXPECT_EQ(report_of(one).at("error").at("code"), "no-window");
    one.faults().set(HostFault::kRefusesOnline, false);
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "online");
}

TEST_F(HostModelTest, RefusingToOfflineNamesHolders) {
    HostModel one = online();
    one.faults().set(HostFault::kRefusesOffline, true);
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "draining");
    EXPECT_EQ(report_of(one).at("holders").as_array().size(), 1U);
    EXPECT_FALSE(one.next_due().has_value());
    one.faults().set(HostFault::kRefusesOffline, false);
    one.advance(now_);
    EXPECT_EQ(report_of(one).at("state"), "offline");
}

TEST_F(HostModelTest, AWishThatIsTakenBackIsObeyed) {
    HostModel one = host({.online = *parse_delay("1s"), .offline = *parse_delay("1s"), .report = {}});
    one.plug(device(), Arrival::kFresh);
    one.want(wanted(true));
    one.advance(now_);
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_EQ(one.use_of(kSerial), Use::kOffline);
    EXPECT_EQ(ledger_.onlined, 0U);
}

TEST_F(HostModelTest, ALieAboutTheSizeIsInTheReport) {
    HostModel one = online();
    one.faults().set(HostFault::kLiesAboutSize, true);
    EXPECT_EQ(report_of(one).at("online_bytes"), mebibytes(128).value);
    EXPECT_EQ(boost::json::parse(one.observed()).at("memdevs").at(0).at("size"), mebibytes(512).value);
}

}  // namespace
}  // namespace memtide::emul
