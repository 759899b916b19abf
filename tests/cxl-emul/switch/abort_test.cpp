#include <memory>

#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/fake_hotplug.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;
using fmapi::VppbBinding;

const fmapi::Message kAbort = fmapi::make_request(Opcode::kRequestAbortBackgroundOperation, 0);
const fmapi::Message kSanitize = fmapi::make_request(Opcode::kSanitize, 0);

TEST(Abort, BindThatHasNotReachedTheHostIsUndone) {
    const auto hosts = std::make_shared<FakeHotplug>();
    TestSwitch sw({.bind = "1h"}, hosts);
    Manager manager(sw.tcp());
    ASSERT_EQ(manager.call<fmapi::BindVppb>({0, 0, kMldPort, 0}).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.call<fmapi::RequestAbortBackgroundOperation>().return_code, ReturnCode::kSuccess);
    EXPECT_EQ(manager.wait_for_background(), ReturnCode::kAborted);
    EXPECT_EQ(manager.vppb(0, 0).binding, VppbBinding::kUnbound);
    EXPECT_TRUE(hosts->attached().empty());
}

TEST(Abort, BindThatTheHostMaySeeGoesOn) {
    const auto hosts = std::make_shared<FakeHotplug>();
    hosts->gate_is_open = false;
    TestSwitch sw({}, hosts);
    const GateOpener opener{hosts};
    Manager manager(sw.tcp());
    ASSERT_EQ(manager.call<fmapi::BindVppb>({0, 0, kMldPort, 0}).return_code, ReturnCode::kBackgroundStarted);
    while (hosts->attached().empty()) manager.background();
    EXPECT_EQ(manager.call<fmapi::RequestAbortBackgroundOperation>().return_code, ReturnCode::kUnsupported);
    hosts->gate_is_open = true;
    EXPECT_EQ(manager.wait_for_background(), ReturnCode::kSuccess);
}

TEST(Abort, UnbindGoesOn) {
    const auto hosts = std::make_shared<FakeHotplug>();
    TestSwitch sw({}, hosts);
    const GateOpener opener{hosts};
    Manager manager(sw.tcp());
    ASSERT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    hosts->gate_is_open = false;
    ASSERT_EQ(manager.call<fmapi::UnbindVppb>({0, 0}).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.call<fmapi::RequestAbortBackgroundOperation>().return_code, ReturnCode::kUnsupported);
}

TEST(Abort, SanitizeEndsAndSaysThatItWasNotFinished) {
    TestSwitch sw({.sanitize = "1h"});
    Manager manager(sw.tcp());
    ASSERT_EQ(manager.call_ld(kMldPort, 0, kSanitize).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.call_ld(kMldPort, 0, kAbort).return_code, ReturnCode::kSuccess);
    EXPECT_EQ(manager.wait_for_ld(kMldPort, 0), ReturnCode::kAborted);
}

TEST(Abort, WithoutAnythingRunningSucceeds) {
    TestSwitch sw;
    Manager manager(sw.tcp());
    EXPECT_EQ(manager.call<fmapi::RequestAbortBackgroundOperation>().return_code, ReturnCode::kSuccess);
    EXPECT_EQ(manager.call_ld(kMldPort, 0, kAbort).return_code, ReturnCode::kSuccess);
}

TEST(Abort, StoppingASwitchDoesNotWaitForEmulatedTime) {
    TestSwitch sw({.bind = "1h", .sanitize = "1h"});
    Manager manager(sw.tcp());
    ASSERT_EQ(manager.call_ld(kMldPort, 1, kSanitize).return_code, ReturnCode::kBackgroundStarted);
    ASSERT_EQ(manager.call<fmapi::BindVppb>({0, 0, kMldPort, 0}).return_code, ReturnCode::kBackgroundStarted);
    sw.restart();
    EXPECT_TRUE(manager.is_dropped());
}

}  // namespace
}  // namespace memtide::emul::test
