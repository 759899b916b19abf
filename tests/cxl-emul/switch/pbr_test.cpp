#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/in_process.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::PidBindingOperation;
using fmapi::ReturnCode;
using fmapi::VppbBinding;

class Pbr : public ::testing::Test {
  protected:
    InProcess fabric_{
        "    pbr: {drts: 2, rgts: 3, routing_modes: [random, congestion-avoidance], gae_vcss: [1]}\n"};
    const fmapi::RouteCost cost_{
        .latency_base_unit = 1000, .latency_entry = 300, .bandwidth_base_unit = 1024, .bandwidth_entry = 32};

    ReturnCode configure(PidBindingOperation operation, std::uint8_t vcs, std::uint8_t vppb,
                         std::uint16_t pid = 0) {
        return fabric_.code<fmapi::ConfigurePidBinding>({operation, vcs, vppb, pid, cost_});
    }
    void bind_pid(std::uint8_t vcs, std::uint8_t vppb, std::uint16_t pid) {
        ASSERT_EQ(configure(PidBindingOperation::kBind, vcs, vppb, pid), ReturnCode::kBackgroundStarted);
        fabric_.end();
    }
    std::uint16_t pid_of(std::uint8_t vcs, std::uint8_t vppb) {
        return fabric_.get<fmapi::GetPidBinding>({vcs, vppb}).pid;
    }
};

TEST_F(Pbr, IdentifySaysWhatTheTopologySays) {
    EXPECT_EQ(fabric_.get<fmapi::IdentifyPbrSwitch>(),
              (fmapi::IdentifyPbrSwitchResponse{.gae_vcss = 2, .drts = 2, .rgts = 3, .routing_modes = 3}));
}

TEST_F(Pbr, ASwitchWithoutItHasNoneOfTheCommands) {
    InProcess plain;
    EXPECT_EQ(plain.code<fmapi::IdentifyPbrSwitch>(), ReturnCode::kUnsupported);
    EXPECT_EQ(plain.code<fmapi::GetPidBinding>({0, 0}), ReturnCode::kUnsupported);
    EXPECT_EQ(plain.code<fmapi::ConfigurePidBinding>(), ReturnCode::kUnsupported);
}

TEST_F(Pbr, BindingRunsInTheBackgroundAndTheVppbShowsIt) {
    ASSERT_EQ(configure(PidBindingOperation::kBind, 0, 1, 0x123), ReturnCode::kBackgroundStarted);
    EXPECT_EQ(fabric_.vppb(0, 1).binding, VppbBinding::kInProgress);
    EXPECT_EQ(pid_of(0, 1), fmapi::kNoPid);
    EXPECT_TRUE(fabric_.get<fmapi::BackgroundOperationStatus>().running());
    fabric_.end();
    EXPECT_EQ(fabric_.vppb(0, 1), (fmapi::Vppb{VppbBinding::kBoundPid, 0xff, 0xff}));
    EXPECT_EQ(fabric_.get<fmapi::GetPidBinding>({0, 1}), (fmapi::GetPidBindingResponse{0x123, cost_}));
    EXPECT_EQ(fabric_.get<fmapi::IdentifySwitchDevice>().bound_vppbs, 1);

    ASSERT_EQ(configure(PidBindingOperation::kUnbind, 0, 1), ReturnCode::kBackgroundStarted);
    EXPECT_EQ(fabric_.vppb(0, 1).binding, VppbBinding::kInProgress);
    fabric_.end();
    EXPECT_EQ(fabric_.vppb(0, 1).binding, VppbBinding::kUnbound);
    EXPECT_EQ(pid_of(0, 1), fmapi::kNoPid);
}

TEST_F(Pbr, WhatFailsLeavesItAsItWas) {
    ASSERT_EQ(configure(PidBindingOperation::kBind, 0, 1, 5), ReturnCode::kBackgroundStarted);
    fabric_.end(ReturnCode::kAborted);
    EXPECT_EQ(fabric_.vppb(0, 1).binding, VppbBinding::kUnbound);
    bind_pid(0, 1, 5);
    ASSERT_EQ(configure(PidBindingOperation::kUnbind, 0, 1), ReturnCode::kBackgroundStarted);
    fabric_.end(ReturnCode::kInternalError);
    EXPECT_EQ(fabric_.vppb(0, 1).binding, VppbBinding::kBoundPid);
    EXPECT_EQ(pid_of(0, 1), 5);
}

TEST_F(Pbr, AVppbHasOneThingAtMost) {
    bind_pid(0, 1, 5);
    EXPECT_EQ(configure(PidBindingOperation::kBind, 0, 1, 6), ReturnCode::kInvalidInput);
    EXPECT_EQ(fabric_.code<fmapi::BindVppb>({0, 1, kMldPort, 0}), ReturnCode::kInvalidInput);
    EXPECT_EQ(fabric_.code<fmapi::UnbindVppb>({0, 1}), ReturnCode::kInvalidInput);
    fabric_.bind(0, 2, kMldPort, 0);
    EXPECT_EQ(configure(PidBindingOperation::kBind, 0, 2, 6), ReturnCode::kInvalidInput);
    EXPECT_EQ(configure(PidBindingOperation::kUnbind, 0, 2), ReturnCode::kInvalidInput);
}

TEST_F(Pbr, APidIsOfOneVppbAtMost) {
    bind_pid(0, 1, 5);
    EXPECT_EQ(configure(PidBindingOperation::kBind, 1, 1, 5), ReturnCode::kInvalidInput);
    bind_pid(1, 1, 6);
    ASSERT_EQ(configure(PidBindingOperation::kUnbind, 0, 1), ReturnCode::kBackgroundStarted);
    fabric_.end();
    bind_pid(1, 2, 5);
}

TEST_F(Pbr, WhatIsNotThereIsRefused) {
    EXPECT_EQ(configure(PidBindingOperation::kUnbind, 0, 1), ReturnCode::kInvalidInput);
    EXPECT_EQ(configure(PidBindingOperation::kBind, 2, 0, 5), ReturnCode::kInvalidInput);
    EXPECT_EQ(configure(PidBindingOperation::kBind, 0, 4, 5), ReturnCode::kInvalidInput);
    EXPECT_EQ(configure(PidBindingOperation::kBind, 0, 0, fmapi::kNoPid), ReturnCode::kInvalidInput);
    EXPECT_EQ(configure(PidBindingOperation{2}, 0, 0, 5), ReturnCode::kInvalidInput);
    EXPECT_EQ(fabric_.code<fmapi::GetPidBinding>({0, 4}), ReturnCode::kInvalidInput);
    bind_pid(0, 0, fmapi::kMaxPid);
}

TEST_F(Pbr, OneOperationOfTheSwitchAtATime) {
    ASSERT_EQ(configure(PidBindingOperation::kBind, 0, 1, 5), ReturnCode::kBackgroundStarted);
    EXPECT_EQ(configure(PidBindingOperation::kBind, 0, 2, 6), ReturnCode::kBusy);
    EXPECT_EQ(fabric_.code<fmapi::BindVppb>({0, 2, kMldPort, 0}), ReturnCode::kBusy);
    fabric_.end();
}

TEST(PbrTopology, MistakesAreRefused) {
    const auto fails = [](const std::string& line) {
        std::string text = test_topology("/media");
        text.insert(text.find("    ports:\n"), "    pbr: " + line + "\n");
        return !parse_topology(text, "test");
    };
    EXPECT_TRUE(fails("{drts: 0}"));
    EXPECT_TRUE(fails("{rgts: 256}"));
    EXPECT_TRUE(fails("{routing_modes: [magic]}"));
    EXPECT_TRUE(fails("{gae_vcss: [64]}"));
    EXPECT_TRUE(fails("{drt: 1}"));
    EXPECT_FALSE(fails("{}"));
}

}  // namespace
}  // namespace memtide::emul::test
