#include "cxl-emul/switch/qos.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/in_process.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;

constexpr std::uint64_t kGiB = gibibytes(1).value;

std::vector<std::uint64_t> granted(std::uint64_t bandwidth, const std::vector<LdTraffic>& lds) {
    return share_bandwidth(bandwidth, lds).granted;
}

// --- the model ---

TEST(Qos, OneThatWantsLittleGetsItAll) {
    EXPECT_EQ(granted(32 * kGiB, {{.demand = 5}, {.demand = 7}}), (std::vector<std::uint64_t>{5, 7}));
}

TEST(Qos, OneOverItsLimitGetsNoMoreThanThatThoughTheDeviceIsIdle) {
    EXPECT_EQ(granted(256 * kGiB, {{.limit = 64, .demand = 100 * kGiB}}),
              (std::vector<std::uint64_t>{64 * kGiB}));
}

TEST(Qos, APromiseIsKeptUnderContention) {
    const auto got = granted(
        256 * kGiB, {{.allocated = 192, .demand = 300 * kGiB}, {.allocated = 0, .demand = 300 * kGiB}});
    EXPECT_EQ(got, (std::vector<std::uint64_t>{(192 + 32) * kGiB, 32 * kGiB}));
}

TEST(Qos, WhatOneLeavesOthersGet) {
    const auto got = granted(256 * kGiB, {{.allocated = 192, .demand = 10 * kGiB},
                                          {.allocated = 64, .demand = 300 * kGiB},
                                          {.demand = 20 * kGiB}});
    EXPECT_EQ(got, (std::vector<std::uint64_t>{10 * kGiB, 226 * kGiB, 20 * kGiB}));
}

TEST(Qos, BackPressureIsTheShareThatHasToWait) {
    EXPECT_EQ(
        share_bandwidth(100, std::vector<LdTraffic>{{.demand = 50}, {.demand = 50}}).backpressure_percent, 0);
    EXPECT_EQ(
        share_bandwidth(100, std::vector<LdTraffic>{{.demand = 100}, {.demand = 100}}).backpressure_percent,
        50);
    EXPECT_EQ(share_bandwidth(100, std::vector<LdTraffic>{{.demand = 400}}).backpressure_percent, 75);
    // Who is held back by its limit does not press.
    EXPECT_EQ(share_bandwidth(256, std::vector<LdTraffic>{{.limit = 1, .demand = 200}}).backpressure_percent,
              0);
    // Nobody looks.
    EXPECT_EQ(share_bandwidth(100, std::vector<LdTraffic>{{.demand = 100}, {.demand = 100}},
                              {.backpressure_sample_interval = 0})
                  .backpressure_percent,
              0);
}

TEST(Qos, LoadFollowsPromisesLimitsAndCongestion) {
    const std::vector<LdTraffic> calm{
        {.allocated = 128, .demand = 10}, {.demand = 10}, {.limit = 1, .demand = 99}};
    EXPECT_EQ(
        share_bandwidth(256, calm).loads,
        (std::vector<DeviceLoad>{DeviceLoad::kLight, DeviceLoad::kOptimal, DeviceLoad::kModerateOverload}));
    fmapi::QosControl control{.egress_moderate_percent = 10, .egress_severe_percent = 40};
    const auto load = [&](std::uint64_t demand) {
        return share_bandwidth(100, std::vector<LdTraffic>{{.demand = 100}, {.demand = demand}}, control)
            .loads[0];
    };
    EXPECT_EQ(load(100), DeviceLoad::kOptimal);  // not enabled
    control.telemetry = fmapi::kEgressPortCongestion;
    EXPECT_EQ(load(0), DeviceLoad::kOptimal);
    EXPECT_EQ(load(20), DeviceLoad::kModerateOverload);
    EXPECT_EQ(load(100), DeviceLoad::kSevereOverload);
}

std::uint64_t total(const std::vector<std::uint64_t>& values) {
    return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

TEST(QosProperty, PromisesLimitsAndSumsHoldWhateverIsWanted) {
    std::mt19937_64 random(1);
    for (int run = 0; run < 20'000; ++run) {
        const std::uint64_t bandwidth = random() >> (8 + random() % 56);
        std::vector<LdTraffic> lds(1 + random() % kMaxLds);
        unsigned left = kWholeBandwidth;
        for (LdTraffic& ld : lds) {
            ld.allocated = static_cast<std::uint8_t>(random() % (std::min(left, 255U) + 1));
            left -= ld.allocated;
            ld.limit = random() % 2 == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(random());
            ld.demand = random() >> random() % 64;
        }
        const BandwidthShares shares = share_bandwidth(bandwidth, lds);
        ASSERT_EQ(shares.granted.size(), lds.size());
        std::uint64_t wanted = 0;
        std::uint64_t most_surplus = 0;
        for (std::size_t i = 0; i < lds.size(); ++i) {
            const std::uint64_t cap =
                std::min(lds[i].demand, lds[i].limit == 0 ? bandwidth : part_of(bandwidth, lds[i].limit));
            wanted += cap;
            const std::uint64_t promised = part_of(bandwidth, lds[i].allocated);
            ASSERT_LE(shares.granted[i], cap) << "more than wanted, or than the limit, in run " << run;
            ASSERT_GE(shares.granted[i], std::min(cap, promised)) << "a promise is broken in run " << run;
            most_surplus = std::max(most_surplus, shares.granted[i] - std::min(shares.granted[i], promised));
        }
        ASSERT_EQ(total(shares.granted), std::min(wanted, bandwidth)) << "wasted or invented in run " << run;
        // Whoever goes short has as much beyond its promise as anybody, but for what does not divide.
        for (std::size_t i = 0; i < lds.size(); ++i) {
            const std::uint64_t cap =
                std::min(lds[i].demand, lds[i].limit == 0 ? bandwidth : part_of(bandwidth, lds[i].limit));
            if (shares.granted[i] == cap) continue;
            ASSERT_GE(shares.granted[i] - part_of(bandwidth, lds[i].allocated) + 1, most_surplus)
                << "unfair in run " << run;
        }
        ASSERT_LE(shares.backpressure_percent, 100);
    }
}

// --- the commands ---

class QosCommands : public ::testing::Test {
  protected:
    InProcess fabric_;

    ReturnCode control(const fmapi::QosControl& control) {
        return fabric_.at_device<fmapi::SetQosControl>(kMldPort, control).return_code;
    }
    ReturnCode allocate(const fmapi::QosFractions& fractions) {
        return fabric_.at_device<fmapi::SetQosAllocatedBandwidth>(kMldPort, fractions).return_code;
    }
    ReturnCode limit(const fmapi::QosFractions& fractions) {
        return fabric_.at_device<fmapi::SetQosBandwidthLimit>(kMldPort, fractions).return_code;
    }
    std::vector<std::uint8_t> allocated(const fmapi::QosFractionsRequest& request = {}) {
        return fabric_.get_at_device<fmapi::GetQosAllocatedBandwidth>(kMldPort, request).fractions;
    }
    std::vector<std::uint8_t> limits(const fmapi::QosFractionsRequest& request = {}) {
        return fabric_.get_at_device<fmapi::GetQosBandwidthLimit>(kMldPort, request).fractions;
    }
    unsigned backpressure() {
        return fabric_.get_at_device<fmapi::GetQosStatus>(kMldPort).backpressure_average_percent;
    }
    Device& mld() { return fabric_.model().devices[0]; }
};

TEST_F(QosCommands, DefaultsAreThoseOfTheSpecification) {
    EXPECT_EQ(fabric_.get_at_device<fmapi::GetQosControl>(kMldPort), fmapi::QosControl());
    EXPECT_EQ(allocated(), (std::vector<std::uint8_t>(4)));
    EXPECT_EQ(limits(), (std::vector<std::uint8_t>(4)));
    EXPECT_EQ(backpressure(), 0U);
    EXPECT_EQ(fabric_.get_at_device<fmapi::GetLdInfo>(kMldPort).qos_telemetry, 3);
}

TEST_F(QosCommands, WhatIsSetIsAnsweredAndReadBack) {
    const fmapi::QosControl wanted{3, 20, 30, 15, 1000, 255};
    EXPECT_EQ(fabric_.get_at_device<fmapi::SetQosControl>(kMldPort, wanted), wanted);
    EXPECT_EQ(fabric_.get_at_device<fmapi::GetQosControl>(kMldPort), wanted);
    const fmapi::QosFractions fractions{1, {100, 50}};
    EXPECT_EQ(fabric_.get_at_device<fmapi::SetQosAllocatedBandwidth>(kMldPort, fractions), fractions);
    EXPECT_EQ(allocated(), (std::vector<std::uint8_t>{0, 100, 50, 0}));
    EXPECT_EQ(fabric_.get_at_device<fmapi::SetQosBandwidthLimit>(kMldPort, fractions), fractions);
    EXPECT_EQ(limits({.lds = 2, .first_ld = 2}), (std::vector<std::uint8_t>{50, 0}));
}

TEST_F(QosCommands, ControlsThatMakeNoSenseAreRefused) {
    EXPECT_EQ(control({.telemetry = 4}), ReturnCode::kInvalidInput);
    EXPECT_EQ(control({.egress_moderate_percent = 0}), ReturnCode::kInvalidInput);
    EXPECT_EQ(control({.egress_severe_percent = 101}), ReturnCode::kInvalidInput);
    EXPECT_EQ(control({.egress_moderate_percent = 25, .egress_severe_percent = 25}),
              ReturnCode::kInvalidInput);
    EXPECT_EQ(control({.backpressure_sample_interval = 16}), ReturnCode::kInvalidInput);
    EXPECT_EQ(fabric_.get_at_device<fmapi::GetQosControl>(kMldPort), fmapi::QosControl());
}

TEST_F(QosCommands, LdsThatAreNotThereAreRefused) {
    EXPECT_EQ(allocate({4, {1}}), ReturnCode::kInvalidInput);
    EXPECT_EQ(allocate({3, {1, 1}}), ReturnCode::kInvalidInput);
    EXPECT_EQ(allocate({0, {}}), ReturnCode::kInvalidInput);
    EXPECT_EQ(limit({255, {1}}), ReturnCode::kInvalidInput);
    EXPECT_EQ(fabric_.at_device<fmapi::GetQosAllocatedBandwidth>(kMldPort, {255, 4}).return_code,
              ReturnCode::kInvalidInput);
    EXPECT_EQ(fabric_.at_device<fmapi::GetQosBandwidthLimit>(kMldPort, {255, 255}).return_code,
              ReturnCode::kInvalidInput);
}

TEST_F(QosCommands, NoMoreIsPromisedThanThereIs) {
    EXPECT_EQ(allocate({0, {128, 128}}), ReturnCode::kSuccess);
    EXPECT_EQ(allocate({2, {1}}), ReturnCode::kInvalidInput);
    EXPECT_EQ(allocated(), (std::vector<std::uint8_t>{128, 128, 0, 0}));
    EXPECT_EQ(allocate({1, {127, 1}}), ReturnCode::kSuccess);  // as a whole
    EXPECT_EQ(limit({0, {255, 255, 255, 255}}), ReturnCode::kSuccess);
}

TEST_F(QosCommands, AnSldHasNone) {
    EXPECT_EQ(
        fabric_
            .at_device(kSldPort, fmapi::make_request(fmapi::Opcode::kGetQosStatus, 0), fmapi::MctpType::kCci)
            .return_code,
        ReturnCode::kUnsupported);
}

TEST_F(QosCommands, HostsThatTakeTooMuchAreThrottledAndTheStatusShowsIt) {
    mld().lds[0].qos.demand = 64 * kGiB;  // twice the device
    mld().lds[1].qos.demand = 32 * kGiB;
    EXPECT_EQ(backpressure(), 0U);  // there is no host yet
    fabric_.bind(0, 0, kMldPort, 0);
    EXPECT_EQ(bandwidth_of(mld()).granted, (std::vector<std::uint64_t>{32 * kGiB, 0, 0, 0}));
    fabric_.bind(1, 0, kMldPort, 1);
    EXPECT_EQ(bandwidth_of(mld()).granted, (std::vector<std::uint64_t>{16 * kGiB, 16 * kGiB, 0, 0}));
    EXPECT_EQ(backpressure(), 66U);
    ASSERT_EQ(allocate({1, {192}}), ReturnCode::kSuccess);
    EXPECT_EQ(bandwidth_of(mld()).granted, (std::vector<std::uint64_t>{4 * kGiB, 28 * kGiB, 0, 0}));
    ASSERT_EQ(limit({0, {16}}), ReturnCode::kSuccess);
    EXPECT_EQ(bandwidth_of(mld()).granted, (std::vector<std::uint64_t>{2 * kGiB, 30 * kGiB, 0, 0}));
}

TEST(QosTopology, BandwidthAndDemandsAreReadAndMistakesRefused) {
    const auto with = [](const std::string& more) {
        std::string text = test_topology("/media");
        text.insert(text.find("        sanitize:"), more);
        return parse_topology(text, "test");
    };
    const auto topology = with("        bandwidth: 8GiB\n        demands: [1GiB, 2GiB]\n");
    ASSERT_TRUE(topology) << topology.error().message;
    const SwitchModel model(topology->switches[0]);
    EXPECT_EQ(model.devices[0].config.bandwidth, gibibytes(8));
    EXPECT_EQ(model.devices[0].lds[1].qos.demand, 2 * kGiB);
    EXPECT_FALSE(with("        bandwidth: 0\n"));
    EXPECT_FALSE(with("        demands: [1, 2, 3, 4, 5]\n"));
}

}  // namespace
}  // namespace memtide::emul::test
