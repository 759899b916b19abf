#include <memory>

#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/fake_hotplug.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;
using fmapi::UnbindOption;
using fmapi::VppbBinding;

class Hotplug : public ::testing::Test {
  protected:
    std::shared_ptr<FakeHotplug> hosts_ = std::make_shared<FakeHotplug>();
    TestSwitch switch_{{}, hosts_};
    Manager manager_{switch_.tcp()};
};

TEST_F(Hotplug, HostIsToldSlotSerialAndSlice) {
    ASSERT_EQ(manager_.bind(1, 3, kMldPort, 1), ReturnCode::kSuccess);
    ASSERT_EQ(hosts_->attached().size(), 1U);
    const HotplugDevice device = hosts_->attached()[0];
    EXPECT_EQ(device.slot.switch_name.value, "switch0");
    EXPECT_EQ(device.slot.host.value, "host1");
    EXPECT_EQ(device.slot.vcs, 1);
    EXPECT_EQ(device.slot.vppb, 3);
    EXPECT_EQ(device.serial.value, 0x4d54000100000002U);
    EXPECT_EQ(device.media_file, switch_.media_file("mld0"));
    EXPECT_EQ(device.offset, mebibytes(256));
    EXPECT_EQ(device.size, mebibytes(256));
}

TEST_F(Hotplug, SldComesWithItsOwnSerial) {
    ASSERT_EQ(manager_.bind(0, 0, kSldPort, kWholePort), ReturnCode::kSuccess);
    EXPECT_EQ(hosts_->attached().at(0).serial.value, 0x50U);
    EXPECT_EQ(hosts_->attached().at(0).offset, Bytes{0});
}

TEST_F(Hotplug, UnbindOptionReachesTheHost) {
    for (const auto option : {UnbindOption::kSurpriseHotRemove, UnbindOption::kWaitForLinkDown,
                              UnbindOption::kManagedHotRemove}) {
        ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
        ASSERT_EQ(manager_.unbind(0, 0, option), ReturnCode::kSuccess);
        EXPECT_EQ(hosts_->detached().back(), option);
    }
}

TEST_F(Hotplug, FailedBindLeavesTheLdToOthers) {
    hosts_->answer_with(fail(ErrorCode::kInternal, "no such slot"));
    EXPECT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kInternalError);
    EXPECT_EQ(manager_.vppb(0, 0).binding, VppbBinding::kUnbound);
    hosts_->answer_with(fail(ErrorCode::kUnavailable, "the host is booting"));
    EXPECT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kRetryRequired);
    hosts_->answer_with({});
    EXPECT_EQ(manager_.bind(1, 0, kMldPort, 0), ReturnCode::kSuccess);
}

TEST_F(Hotplug, FailedUnbindLeavesTheLdBound) {
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    hosts_->answer_with(fail(ErrorCode::kTimeout, "the host does not let go"));
    EXPECT_EQ(manager_.unbind(0, 0), ReturnCode::kRetryRequired);
    EXPECT_EQ(manager_.vppb(0, 0), (fmapi::Vppb{VppbBinding::kBoundLd, kMldPort, 0}));
    hosts_->answer_with({});
    EXPECT_EQ(manager_.bind(1, 0, kMldPort, 0), ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.unbind(0, 0, UnbindOption::kSurpriseHotRemove), ReturnCode::kSuccess);
}

TEST_F(Hotplug, BindWithoutMediaDoesNotReachTheHost) {
    ASSERT_EQ(unlink(switch_.media_file("mld0").c_str()), 0);
    EXPECT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kMediaDisabled);
    EXPECT_TRUE(hosts_->attached().empty());
    EXPECT_EQ(manager_.vppb(0, 0).binding, VppbBinding::kUnbound);
}

}  // namespace
}  // namespace memtide::emul::test
