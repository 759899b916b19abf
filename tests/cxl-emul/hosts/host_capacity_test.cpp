#include <algorithm>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gtest/gtest.h>

#include "cxl-emul/hosts/host_model.h"
#include "cxl-emul/switch/commands.h"
#include "tests/cxl-emul/switch/dcd_switch.h"

// Hosts with dynamic capacity, on the LDs of a device whose fabric manager is the test.
namespace memtide::emul::test {
namespace {

using namespace std::chrono_literals;
using Use = HostModel::Use;
using Arrival = HostModel::Arrival;
using Removal = HostModel::Removal;
using fmapi::DynamicCapacityEvent;
using fmapi::ReturnCode;

constexpr std::uint8_t kByTag = 0;
constexpr std::uint8_t kForcedAndErased = fmapi::kDcForcedRemoval | fmapi::kDcSanitizeOnRelease;
constexpr std::size_t kManyExtents = 64;

// The switch of dcd_switch.h with vPPB 0 of each host bound to the LD of its number.
class BoundDcd {
  public:
    BoundDcd() : model_(config()) {
        for (std::size_t host = 0; host < 2; ++host) {
            VirtualBridge& bridge = model_.bridge({host, 0});
            bridge.state = VirtualBridge::State::kBound;
            bridge.port = kDcdPort;
            bridge.ld = host;
            model_.devices[0].lds[host].taken_by = VppbId{host, 0};
        }
        erase();
    }

    DcdState& dcd() { return model_.devices[0].dynamic.value(); }
    const DynamicCapacity& memory() { return dcd().memory; }
    const std::shared_ptr<MemoryMedia>& media() { return media_; }
    bool is_reachable = true;

    PluggedDevice ld(std::size_t host) {
        return {SerialNumber{0x201 + host}, media_, {}, {}, std::make_shared<LdMailbox>(*this, host)};
    }

    ReturnCode add(const fmapi::InitiateDynamicCapacityAddRequest& request) {
        return logged(dcd().memory.add(request, EventLogs::kDynamicCapacityRecords));
    }
    ReturnCode offer(std::size_t host, Bytes size, std::uint8_t tag = 1) {
        return add({.host = static_cast<std::uint16_t>(host), .length = size.value, .tag = tag_of(tag)});
    }
    ReturnCode release(std::size_t host, std::uint8_t flags, std::uint8_t tag = 1) {
        return logged(dcd().memory.release(
            {.host = static_cast<std::uint16_t>(host), .flags = flags, .tag = tag_of(tag)},
            EventLogs::kDynamicCapacityRecords));
    }
    ReturnCode release(std::size_t host, std::uint8_t flags, std::vector<fmapi::DcExtent> extents) {
        const auto how = static_cast<std::uint8_t>(fmapi::DcRemoval::kPrescriptive);
        return logged(dcd().memory.release({.host = static_cast<std::uint16_t>(host),
                                            .flags = static_cast<std::uint8_t>(flags | how),
                                            .extents = std::move(extents)},
                                           EventLogs::kDynamicCapacityRecords));
    }
    // As the switch does it behind each command.
    void erase() {
        EraseControl control;
        while (const auto range = dcd().memory.take_dirty())
            dcd().memory.erased(*range, media_->erase({range->begin}, {range->size()}, control).has_value());
    }
    // What is in the device's log of the fabric manager.
    std::vector<fmapi::DynamicCapacityRecord> records() {
        std::vector<fmapi::DynamicCapacityRecord> all;
        const auto read = dcd().events.read(fmapi::EventLog::kDynamicCapacity, 1000);
        for (const fmapi::EventRecord& record : read.records)
            all.push_back(
                fmapi::decode<fmapi::DynamicCapacityRecord>(std::as_bytes(std::span(record.data))).value());
        return all;
    }
    fmapi::Message send(std::size_t host, const fmapi::Message& request) {
        return handle_of_host(model_, {host, 0}, request).response;
    }

  private:
    class LdMailbox final : public Mailbox {
      public:
        LdMailbox(BoundDcd& dcd, std::size_t host) : dcd_(dcd), host_(host) {}
        Result<fmapi::Message> send(const fmapi::Message& request) override {
            if (!dcd_.is_reachable) return fail(ErrorCode::kUnavailable, "the switch is off");
            return dcd_.send(host_, request);
        }

      private:
        BoundDcd& dcd_;
        std::size_t host_;
    };

    static SwitchConfig config() {
        SwitchConfig config = parse_topology(dcd_topology("/dev/shm"), "test.yaml").value().switches.at(0);
        config.devices.at(0).max_extents = kManyExtents;
        return config;
    }
    ReturnCode logged(ReturnCode code) {
        dcd().log_events();
        return code;
    }

    SwitchModel model_;
    std::shared_ptr<MemoryMedia> media_ = std::make_shared<MemoryMedia>("dcd0", mebibytes(768));
};

constexpr SerialNumber kSerial{0x201};
constexpr Bytes kSize = mebibytes(256);

class HostCapacityTest : public testing::Test {
  protected:
    HostModel host(std::size_t number = 0, HostDelays delays = {}) {
        return {HostId(fmt::format("host{}", number)), delays, 1, ledger_};
    }
    static WantedState wanted(bool online, Bytes size = kSize) {
        return {1, {{CompositionId("c-1"), 0, {kSerial}, size, online}}};
    }
    static std::string state_of(const HostModel& host) {
        return std::string(boost::json::parse(host.observed()).at("regions").at(0).at("state").as_string());
    }
    static std::uint64_t memdev_size(const HostModel& host) {
        return boost::json::parse(host.observed()).at("memdevs").at(0).at("size").to_number<std::uint64_t>();
    }
    // Host 0 with memory of tag 1 online.
    HostModel online(HostDelays delays = {}) {
        HostModel one = host(0, delays);
        EXPECT_EQ(dcd_.offer(0, kSize), ReturnCode::kSuccess);
        one.plug(dcd_.ld(0), Arrival::kFresh);
        one.want(wanted(true));
        one.advance(now_);
        return one;
    }
    bool has_given_back(std::size_t host) {
        const auto all = dcd_.records();
        return std::ranges::any_of(all, [&](const auto& record) {
            return record.event == DynamicCapacityEvent::kCapacityReleased && record.host == host;
        });
    }
    void expect_violation(const char* kind) {
        ASSERT_EQ(ledger_.violation_count(), 1U);
        EXPECT_EQ(ledger_.violations()[0].kind, kind);
    }

    Ledger ledger_;
    BoundDcd dcd_;
    HostModel::Time now_{1h};
};

TEST_F(HostCapacityTest, AcceptsWhatItWasOfferedBeforeTheBindAndWritesOnlyWhenItIsWanted) {
    HostModel one = host();
    ASSERT_EQ(dcd_.offer(0, kSize), ReturnCode::kSuccess);
    one.plug(dcd_.ld(0), Arrival::kFresh);
    ASSERT_EQ(dcd_.memory().accepted(0).size(), 1U);
    EXPECT_EQ(dcd_.records().at(0).event, DynamicCapacityEvent::kAddCapacityResponse);
    EXPECT_EQ(memdev_size(one), kSize.value);
    one.advance(now_);
    EXPECT_EQ(one.use_of(kSerial), Use::kFound);
    EXPECT_FALSE(dcd_.media()->first_written({}, mebibytes(768)).has_value());
    one.want(wanted(true));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
    EXPECT_TRUE(dcd_.media()->first_written({}, mebibytes(768)).has_value());
    EXPECT_EQ(boost::json::parse(one.observed()).at("regions").at(0).at("online_bytes"), kSize.value);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, AcceptsWhatItIsOfferedAfterTheBindWithoutItsAgent) {
    HostModel one = host();
    one.plug(dcd_.ld(0), Arrival::kFresh);
    one.want(wanted(true));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "found");
    EXPECT_EQ(memdev_size(one), 0U);
    ASSERT_EQ(dcd_.offer(0, kSize), ReturnCode::kSuccess);
    one.interrupt(kSerial);
    EXPECT_EQ(dcd_.memory().accepted(0).size(), 1U);
    EXPECT_TRUE(one.advance(now_));
    EXPECT_EQ(state_of(one), "online");
    EXPECT_TRUE(one.has_news());
}

TEST_F(HostCapacityTest, ARegionIsOnlineOnlyWhenAllOfItIsThere) {
    HostModel one = host();
    one.plug(dcd_.ld(0), Arrival::kFresh);
    one.want(wanted(true));
    ASSERT_EQ(dcd_.offer(0, mebibytes(192), 1), ReturnCode::kSuccess);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "found");
    EXPECT_EQ(memdev_size(one), mebibytes(192).value);
    EXPECT_EQ(one.online_count(), 0U);
    ASSERT_EQ(dcd_.offer(0, mebibytes(64), 2), ReturnCode::kSuccess);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
}

TEST_F(HostCapacityTest, WhatIsAddedToARegionThatIsOnlineComesOnlineToo) {
    HostModel one = online();
    one.want(wanted(true, mebibytes(320)));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "found");
    ASSERT_EQ(dcd_.offer(0, mebibytes(64), 2), ReturnCode::kSuccess);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
    EXPECT_EQ(boost::json::parse(one.observed()).at("regions").at(0).at("online_bytes"),
              mebibytes(320).value);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, GivesBackWhatItHasTakenOfflineAndOnlyThenSaysSo) {
    HostModel one = online({.online = {}, .offline = *parse_delay("30ms"), .report = {}});
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "draining");
    EXPECT_EQ(dcd_.memory().accepted(0).size(), 1U);
    one.told();
    EXPECT_TRUE(one.advance(now_ + 30ms));
    EXPECT_EQ(state_of(one), "offline");
    EXPECT_TRUE(one.has_news());
    EXPECT_TRUE(dcd_.memory().accepted(0).empty());
    EXPECT_TRUE(has_given_back(0));
    one.unplug(kSerial, Removal::kAsked);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, WhatWasNeverOnlineIsGivenBackWhenItIsToBeOffline) {
    HostModel one = host();
    ASSERT_EQ(dcd_.offer(0, kSize), ReturnCode::kSuccess);
    one.plug(dcd_.ld(0), Arrival::kFresh);
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "offline");
    EXPECT_TRUE(dcd_.memory().accepted(0).empty());
}

TEST_F(HostCapacityTest, MemoryThatIsNotLetGoIsNotGivenBack) {
    HostModel one = online();
    one.faults().set(HostFault::kRefusesOffline, true);
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "draining");
    EXPECT_EQ(boost::json::parse(one.observed()).at("regions").at(0).at("holders").as_array().size(), 1U);
    EXPECT_EQ(dcd_.memory().accepted(0).size(), 1U);
}

TEST_F(HostCapacityTest, WhoRefusesCapacityAnswersWithAnEmptyList) {
    HostModel one = host();
    one.faults().set(HostFault::kRefusesCapacity, true);
    one.want(wanted(true));
    ASSERT_EQ(dcd_.offer(0, kSize), ReturnCode::kSuccess);
    one.plug(dcd_.ld(0), Arrival::kFresh);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "found");
    EXPECT_TRUE(dcd_.memory().offered(0).empty());
    EXPECT_EQ(dcd_.records().at(0).extent.length, 0U);
    one.faults().set(HostFault::kRefusesCapacity, false);
    ASSERT_EQ(dcd_.offer(0, kSize), ReturnCode::kSuccess);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
}

TEST_F(HostCapacityTest, AForcedReleaseUnderUseIsASurpriseAndNoViolation) {
    HostModel one = online();
    ASSERT_EQ(dcd_.release(0, kByTag | kForcedAndErased), ReturnCode::kSuccess);
    dcd_.erase();  // before the host has looked
    one.advance(now_);
    EXPECT_EQ(state_of(one), "found");
    ASSERT_EQ(ledger_.surprises().size(), 1U);
    EXPECT_EQ(ledger_.surprises()[0].serial, kSerial);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, MemoryThatIsTakenAndGivenAgainIsAnotherMemory) {
    HostModel one = online();
    ASSERT_EQ(dcd_.release(0, kByTag | kForcedAndErased), ReturnCode::kSuccess);
    dcd_.erase();
    const fmapi::DcExtent same{0, kSize.value, tag_of(2), 0};
    ASSERT_EQ(
        dcd_.add(
            {.host = 0, .selection = fmapi::DcSelection::kPrescriptive, .tag = tag_of(2), .extents = {same}}),
        ReturnCode::kSuccess);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_EQ(ledger_.surprises().size(), 1U);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, OfMemoryThatIsTakenInPartTheRestStaysInUse) {
    HostModel one = online();
    const std::uint64_t begin = dcd_.memory().accepted(0).at(0).dpa;
    ASSERT_EQ(dcd_.release(0, kForcedAndErased, {{begin, mebibytes(64).value, {}, 0}}), ReturnCode::kSuccess);
    dcd_.erase();
    one.advance(now_);
    EXPECT_EQ(state_of(one), "found");
    EXPECT_EQ(one.online_count(), 1U);
    EXPECT_EQ(memdev_size(one), mebibytes(192).value);
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "offline");
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, AnOfferThatIsWithdrawnBeforeTheHostLooksIsNotMissed) {
    HostModel one = host();
    ASSERT_EQ(dcd_.offer(0, kSize, 1), ReturnCode::kSuccess);
    ASSERT_EQ(dcd_.release(0, kByTag | fmapi::kDcForcedRemoval, 1), ReturnCode::kSuccess);
    ASSERT_EQ(dcd_.offer(0, kSize, 2), ReturnCode::kSuccess);
    one.plug(dcd_.ld(0), Arrival::kFresh);
    ASSERT_EQ(dcd_.memory().accepted(0).size(), 1U);
    EXPECT_EQ(dcd_.memory().accepted(0)[0].tag, tag_of(2));
    EXPECT_TRUE(ledger_.surprises().empty());
}

TEST_F(HostCapacityTest, WhatIsAskedBackIsGivenBackAtOnceWhenItIsNotInUse) {
    HostModel one = host();
    ASSERT_EQ(dcd_.offer(0, kSize), ReturnCode::kSuccess);
    one.plug(dcd_.ld(0), Arrival::kFresh);
    const std::uint64_t begin = dcd_.memory().accepted(0).at(0).dpa;
    ASSERT_EQ(dcd_.release(0, 0, {{begin, mebibytes(64).value, {}, 0}}), ReturnCode::kSuccess);
    one.interrupt(kSerial);
    EXPECT_EQ(memdev_size(one), mebibytes(192).value);
    ASSERT_EQ(dcd_.release(0, kByTag), ReturnCode::kSuccess);
    one.interrupt(kSerial);
    EXPECT_TRUE(dcd_.memory().accepted(0).empty());
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, WhatIsAskedBackWhileItIsInUseStaysUntilTheAgentIsTold) {
    HostModel one = online();
    ASSERT_EQ(dcd_.release(0, kByTag), ReturnCode::kSuccess);
    one.interrupt(kSerial);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
    EXPECT_EQ(dcd_.memory().accepted(0).size(), 1U);
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_TRUE(dcd_.memory().accepted(0).empty());
}

TEST_F(HostCapacityTest, WhatItAcceptedIsStillItsOwnAfterAReboot) {
    HostModel one = online();
    one.reboot();
    EXPECT_EQ(one.use_of(kSerial), Use::kFound);
    EXPECT_EQ(memdev_size(one), kSize.value);
    one.want(wanted(true));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, AHostThatIsOffAnswersOffersWhenItIsUpAndLosesWhatIsTaken) {
    HostModel one = online();
    one.faults().set(HostFault::kReboot, true);
    ASSERT_EQ(dcd_.offer(0, mebibytes(64), 2), ReturnCode::kSuccess);
    one.interrupt(kSerial);
    EXPECT_EQ(dcd_.memory().offered(0).size(), 1U);
    ASSERT_EQ(dcd_.release(0, kByTag | kForcedAndErased, 1), ReturnCode::kSuccess);
    dcd_.erase();
    one.interrupt(kSerial);
    EXPECT_EQ(memdev_size(one), 0U);
    EXPECT_EQ(ledger_.surprises().size(), 1U);
    one.faults().set(HostFault::kReboot, false);
    one.reboot();
    EXPECT_EQ(memdev_size(one), mebibytes(64).value);
    EXPECT_EQ(ledger_.surprises().size(), 1U);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, ALinkThatWasDownBringsBackItsExtentsAndWhatWasOfferedMeanwhile) {
    HostModel one = online();
    one.unplug(kSerial, Removal::kLinkDown);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "absent");
    ASSERT_EQ(dcd_.offer(0, mebibytes(64), 2), ReturnCode::kSuccess);
    one.plug(dcd_.ld(0), Arrival::kLinkUp);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
    EXPECT_EQ(memdev_size(one), mebibytes(320).value);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, WithoutPowerAtTheSwitchEverythingIsGone) {
    HostModel one = online();
    dcd_.is_reachable = false;
    EraseControl control;
    ASSERT_TRUE(dcd_.media()->erase({}, mebibytes(768), control).has_value());
    one.interrupt(kSerial);
    one.unplug(kSerial, Removal::kLinkDown);
    one.advance(now_);
    EXPECT_EQ(state_of(one), "absent");
    EXPECT_EQ(ledger_.violation_count(), 0U);
    EXPECT_TRUE(ledger_.surprises().empty());
}

TEST_F(HostCapacityTest, AnUnbindUnderMemoryInUseIsSeen) {
    HostModel one = online();
    one.unplug(kSerial, Removal::kAsked);
    expect_violation("unbound-online");
}

TEST_F(HostCapacityTest, AnUnbindBySurpriseIsNoted) {
    HostModel one = online();
    one.unplug(kSerial, Removal::kSurprise);
    EXPECT_EQ(ledger_.surprises().size(), 1U);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, MemoryThatSomebodyElseGivesBackUnderUseIsSeen) {
    HostModel one = online();
    const fmapi::DcExtent had = dcd_.memory().accepted(0).at(0);
    const fmapi::UpdatedDcExtents all{{{had.dpa, had.length}}, 0};
    ASSERT_EQ(dcd_.send(0, fmapi::make_request(fmapi::ReleaseDynamicCapacity::kOpcode, 0, fmapi::encode(all)))
                  .return_code,
              ReturnCode::kSuccess);
    one.advance(now_);
    expect_violation("given-back-online");
}

TEST_F(HostCapacityTest, AnEraseUnderMemoryInUseIsSeen) {
    HostModel one = online();
    EraseControl control;
    ASSERT_TRUE(dcd_.media()->erase({}, mebibytes(768), control).has_value());
    one.want(wanted(false));
    one.advance(now_);
    expect_violation("changed-under-host");
}

TEST_F(HostCapacityTest, MemoryGoesFromHostToHostEmptyAndIsNeverAtTwo) {
    HostModel first = online();
    HostModel second = host(1);
    second.plug(dcd_.ld(1), Arrival::kFresh);
    first.want(wanted(false));
    first.advance(now_);
    ASSERT_EQ(dcd_.offer(1, mebibytes(512), 2), ReturnCode::kRetryRequired) << "it is being erased";
    dcd_.erase();
    ASSERT_EQ(dcd_.offer(1, mebibytes(512), 2), ReturnCode::kSuccess);
    second.interrupt(SerialNumber{0x202});
    EXPECT_EQ(memdev_size(second), mebibytes(512).value);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, MemoryThatWasNotErasedIsSeen) {
    constexpr std::uint8_t kNotSanitized = 1;  // region
    const auto offer = [&](std::uint16_t host) {
        return dcd_.add({.host = host, .region = kNotSanitized, .length = kSize.value});
    };
    ASSERT_EQ(offer(0), ReturnCode::kSuccess);
    HostModel first = host();
    first.plug(dcd_.ld(0), Arrival::kFresh);
    first.want(wanted(true));
    first.advance(now_);
    first.want(wanted(false));
    first.advance(now_);
    ASSERT_EQ(offer(1), ReturnCode::kSuccess);
    HostModel second = host(1);
    second.plug(dcd_.ld(1), Arrival::kFresh);
    expect_violation("not-erased");
}

TEST_F(HostCapacityTest, MemoryThatOnlySeemsErasedIsVerifiedInEachExtent) {
    HostModel first = online();
    first.want(wanted(false));
    first.advance(now_);
    dcd_.media()->ignore_erase(true);
    dcd_.erase();
    HostModel second = host(1);
    second.plug(dcd_.ld(1), Arrival::kFresh);
    ASSERT_EQ(dcd_.offer(1, mebibytes(512), 2), ReturnCode::kSuccess);
    WantedState verified = wanted(true, mebibytes(512));
    verified.regions[0].serials = {SerialNumber{0x202}};
    verified.regions[0].samples = 64;
    second.want(verified);
    second.advance(now_);
    EXPECT_EQ(second.use_of(SerialNumber{0x202}), Use::kNotErased);
    EXPECT_EQ(state_of(second), "failed");
    verified.regions[0].online = false;
    second.want(verified);
    second.advance(now_);
    EXPECT_EQ(state_of(second), "offline");
    EXPECT_TRUE(dcd_.memory().accepted(1).empty());
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, OneMediumWithTwoHostsIsSeen) {
    HostModel first = online();
    BoundDcd other;  // a device that gives the same memory away as well
    ASSERT_EQ(other.offer(1, kSize), ReturnCode::kSuccess);
    PluggedDevice liar = other.ld(1);
    liar.media = dcd_.media();
    HostModel second = host(1);
    second.plug(liar, Arrival::kFresh);
    ASSERT_EQ(ledger_.violation_count(), 2U);
    EXPECT_EQ(ledger_.violations()[0].kind, "not-erased");
    EXPECT_EQ(ledger_.violations()[1].kind, "two-hosts");
}

TEST_F(HostCapacityTest, SharedMemoryIsAtSeveralHosts) {
    constexpr std::uint8_t kShareable = 1;  // region
    ASSERT_EQ(dcd_.add({.host = 0, .region = kShareable, .length = kSize.value, .tag = tag_of(3)}),
              ReturnCode::kSuccess);
    ASSERT_EQ(
        dcd_.add(
            {.host = 1, .selection = fmapi::DcSelection::kShared, .region = kShareable, .tag = tag_of(3)}),
        ReturnCode::kSuccess);
    HostModel first = host();
    HostModel second = host(1);
    WantedState of_second = wanted(true);
    of_second.regions[0].serials = {SerialNumber{0x202}};
    first.plug(dcd_.ld(0), Arrival::kFresh);
    first.want(wanted(true));
    first.advance(now_);
    second.plug(dcd_.ld(1), Arrival::kFresh);
    second.want(of_second);
    second.advance(now_);
    EXPECT_EQ(state_of(first), "online");
    EXPECT_EQ(state_of(second), "online");
    first.want(wanted(false));
    first.advance(now_);
    EXPECT_EQ(state_of(first), "offline");
    EXPECT_EQ(dcd_.memory().accepted(1).size(), 1U);
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

TEST_F(HostCapacityTest, AnOfferOfManyExtentsIsAcceptedWhole) {
    fmapi::InitiateDynamicCapacityAddRequest request{
        .host = 0, .selection = fmapi::DcSelection::kPrescriptive, .tag = tag_of(1)};
    for (std::uint64_t i = 0; i < kManyExtents; ++i)
        request.extents.push_back({2 * i * kDcBlock, kDcBlock, {}, 0});
    ASSERT_EQ(dcd_.add(request), ReturnCode::kSuccess);
    HostModel one = host();
    one.plug(dcd_.ld(0), Arrival::kFresh);
    EXPECT_EQ(one.memory_of(kSerial).size(), kManyExtents);
    one.want(wanted(true, {kManyExtents * kDcBlock}));
    one.advance(now_);
    EXPECT_EQ(state_of(one), "online");
    one.want(wanted(false));
    one.advance(now_);
    EXPECT_TRUE(dcd_.memory().accepted(0).empty());
    EXPECT_EQ(ledger_.violation_count(), 0U);
}

}  // namespace
}  // namespace memtide::emul::test
