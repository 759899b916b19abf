#include <memory>

#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/fake_hotplug.h"
#include "tests/cxl-emul/switch/manager.h"
#include "tests/cxl-emul/switch/over_both_transports.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;
using fmapi::VppbBinding;

class Background : public ::testing::Test {
  protected:
    std::shared_ptr<FakeHotplug> hosts_ = std::make_shared<FakeHotplug>();
    TestSwitch switch_{{}, hosts_};
    Manager manager_{switch_.tcp()};
    GateOpener opener_{hosts_};  // destroyed first
};

TEST_F(Background, NothingRanAfterPowerOn) {
    const auto status = manager_.background();
    EXPECT_FALSE(status.running());
    EXPECT_EQ(status.opcode, Opcode{});
}

TEST_F(Background, BindRunsUntilTheHostHasTheDevice) {
    hosts_->gate_is_open = false;
    const auto answer = manager_.call<fmapi::BindVppb>({0, 1, kMldPort, 0});
    EXPECT_EQ(answer.return_code, ReturnCode::kBackgroundStarted);
    EXPECT_TRUE(answer.background);
    EXPECT_TRUE(answer.payload.empty());
    const auto status = manager_.background();
    EXPECT_TRUE(status.running());
    EXPECT_LT(status.percent(), 100U);
    EXPECT_EQ(status.opcode, Opcode::kBindVppb);
    EXPECT_EQ(manager_.vppb(0, 1), (fmapi::Vppb{VppbBinding::kInProgress, kMldPort, 0}));
    EXPECT_EQ(manager_.get<fmapi::IdentifySwitchDevice>().bound_vppbs, 0);
    hosts_->gate_is_open = true;
    EXPECT_EQ(manager_.wait_for_background(), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.vppb(0, 1).binding, VppbBinding::kBoundLd);
}

TEST_F(Background, UnbindRunsUntilTheHostHasLetGo) {
    ASSERT_EQ(manager_.bind(0, 1, kMldPort, 0), ReturnCode::kSuccess);
    hosts_->gate_is_open = false;
    manager_.call<fmapi::UnbindVppb>({0, 1, fmapi::UnbindOption::kManagedHotRemove});
    EXPECT_TRUE(manager_.background().running());
    EXPECT_EQ(manager_.vppb(0, 1).binding, VppbBinding::kInProgress);
    // Still this host's: nobody else may have it, and nobody may erase it under the host.
    const auto sanitize = fmapi::make_request(Opcode::kSanitize, 0);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, sanitize).return_code, ReturnCode::kInvalidSecurityState);
    hosts_->gate_is_open = true;
    EXPECT_EQ(manager_.wait_for_background(), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.vppb(0, 1).binding, VppbBinding::kUnbound);
}

TEST_F(Background, SecondBindOrUnbindIsBusyForEveryManager) {
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    hosts_->gate_is_open = false;
    ASSERT_EQ(manager_.call<fmapi::BindVppb>({0, 1, kMldPort, 1}).return_code,
              ReturnCode::kBackgroundStarted);
    Manager other(switch_.unix_socket());
    EXPECT_EQ(other.call<fmapi::BindVppb>({1, 0, kSldPort, kWholePort}).return_code, ReturnCode::kBusy);
    EXPECT_EQ(other.call<fmapi::BindVppb>({1, 0, kMldPort, 1}).return_code, ReturnCode::kBusy);
    EXPECT_EQ(other.call<fmapi::UnbindVppb>({0, 0}).return_code, ReturnCode::kBusy);
    EXPECT_EQ(other.call<fmapi::UnbindVppb>({0, 1}).return_code, ReturnCode::kBusy);
    EXPECT_TRUE(other.background().running());
    // What does not exist is no matter of waiting.
    EXPECT_EQ(other.call<fmapi::BindVppb>({1, 9, kMldPort, 1}).return_code, ReturnCode::kInvalidInput);
}

TEST_F(Background, OtherLdsAreErasedMeanwhile) {
    hosts_->gate_is_open = false;
    ASSERT_EQ(manager_.call<fmapi::BindVppb>({0, 1, kMldPort, 1}).return_code,
              ReturnCode::kBackgroundStarted);
    const auto sanitize = fmapi::make_request(Opcode::kSanitize, 0);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, sanitize).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager_.wait_for_ld(kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_TRUE(manager_.background().running());
}

TEST(BackgroundOfLd, SecondSanitizeBindAndNewAllocationAreBusy) {
    TestSwitch sw({.sanitize = "1h"});
    Manager manager(sw.tcp());
    const auto sanitize = fmapi::make_request(Opcode::kSanitize, 0);
    ASSERT_EQ(manager.call_ld(kMldPort, 0, sanitize).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.call_ld(kMldPort, 0, sanitize).return_code, ReturnCode::kBusy);
    EXPECT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kBusy);
    const fmapi::SetLdAllocationsPayload none{.first_ld = 0, .allocations = {{0, 0}}};
    const auto set = fmapi::make_request(Opcode::kSetLdAllocations, 0, fmapi::encode(none));
    EXPECT_EQ(manager.call_device(kMldPort, set).return_code, ReturnCode::kBusy);
    EXPECT_EQ(
        manager.call<fmapi::PhysicalPortControl>({kMldPort, fmapi::PortOperation::kAssertPerst}).return_code,
        ReturnCode::kBusy);
    // Each LD is a component of its own.
    EXPECT_EQ(manager.call_ld(kMldPort, 1, sanitize).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.bind(0, 0, kSldPort, kWholePort), ReturnCode::kSuccess);
}

TEST(BackgroundProgress, EmulatedTimeShowsAsPercent) {
    TestSwitch sw({.bind = "20s"});
    Manager manager(sw.tcp());
    ASSERT_EQ(manager.call<fmapi::BindVppb>({0, 0, kMldPort, 0}).return_code, ReturnCode::kBackgroundStarted);
    unsigned percent = 0;
    for (auto status = manager.background(); status.running() && percent < 3; status = manager.background()) {
        EXPECT_GE(status.percent(), percent);
        percent = status.percent();
    }
    EXPECT_GE(percent, 1U);
}

}  // namespace
}  // namespace memtide::emul::test
