#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;
using fmapi::VppbBinding;

class VirtualSwitch : public OverBothTransports {
  protected:
    fmapi::GetVirtualSwitchInfoResponse info(const fmapi::GetVirtualSwitchInfoRequest& request) {
        return manager_.get<fmapi::GetVirtualSwitchInfo>(
            request, fmapi::GetVirtualSwitchInfoResponse::answering(request));
    }
};
INSTANTIATE_TEST_SUITE_P(, VirtualSwitch, both_transports(), transport_name);

TEST_P(VirtualSwitch, ListsVppbsOfTheVcssAskedFor) {
    ASSERT_EQ(manager_.bind(1, 2, kMldPort, 1), ReturnCode::kSuccess);
    const auto all = info({0, 255, {1, 0, 7}});
    ASSERT_EQ(all.vcss.size(), 3U);
    EXPECT_EQ(all.vcss[0].vcs, 1);
    EXPECT_EQ(all.vcss[0].state, fmapi::VcsState::kEnabled);
    EXPECT_EQ(all.vcss[0].upstream_port, 1);
    EXPECT_EQ(all.vcss[0].total_vppbs, 4);
    ASSERT_EQ(all.vcss[0].vppbs.size(), 4U);
    EXPECT_EQ(all.vcss[0].vppbs[2], (fmapi::Vppb{VppbBinding::kBoundLd, kMldPort, 1}));
    EXPECT_EQ(all.vcss[0].vppbs[1].binding, VppbBinding::kUnbound);
    EXPECT_EQ(all.vcss[2].state, fmapi::VcsState::kInvalidVcs);
}

TEST_P(VirtualSwitch, ListsTheVppbsAskedForOnly) {
    const auto some = info({3, 5, {0}});
    EXPECT_EQ(some.vcss.at(0).vppbs.size(), 1U);
    EXPECT_EQ(info({200, 5, {0}}).vcss.at(0).vppbs.size(), 0U);
    EXPECT_EQ(info({0, 0, {0}}).vcss.at(0).total_vppbs, 4);
}

TEST_P(VirtualSwitch, BindsAndUnbindsAnLd) {
    EXPECT_EQ(manager_.bind(0, 3, kMldPort, 1), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.background().opcode, fmapi::Opcode::kBindVppb);
    EXPECT_EQ(manager_.background().percent(), 100U);
    EXPECT_EQ(manager_.vppb(0, 3), (fmapi::Vppb{VppbBinding::kBoundLd, kMldPort, 1}));
    for (const auto option : {fmapi::UnbindOption::kWaitForLinkDown, fmapi::UnbindOption::kManagedHotRemove,
                              fmapi::UnbindOption::kSurpriseHotRemove}) {
        EXPECT_EQ(manager_.unbind(0, 3, option), ReturnCode::kSuccess);
        EXPECT_EQ(manager_.vppb(0, 3).binding, VppbBinding::kUnbound);
        EXPECT_EQ(manager_.bind(0, 3, kMldPort, 1), ReturnCode::kSuccess);
    }
}

TEST_P(VirtualSwitch, BindsAnSldAsAWholePort) {
    EXPECT_EQ(manager_.bind(1, 0, kSldPort, kWholePort), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.vppb(1, 0).binding, VppbBinding::kBoundPort);
    EXPECT_EQ(manager_.vppb(1, 0).port, kSldPort);
}

TEST_P(VirtualSwitch, BindOfWhatDoesNotExistIsRefused) {
    const fmapi::BindVppbRequest requests[] = {
        {7, 0, kMldPort, 0},           // VCS
        {0, 4, kMldPort, 0},           // vPPB
        {0, 0, kNoPort, 0},            // port
        {0, 0, 1, 0},                  // an upstream port
        {0, 0, kEmptyPort, 0},         // nothing behind it
        {0, 0, kMldPort, 4},           // LD
        {0, 0, kMldPort, kWholePort},  // an MLD has LDs
        {0, 0, kSldPort, 0},           // an SLD has none
        {0, 0, kMldPort, 2},           // an LD without memory
    };
    for (const auto& request : requests)
        EXPECT_EQ(manager_.call<fmapi::BindVppb>(request).return_code, ReturnCode::kInvalidInput)
            << "VCS " << int{request.vcs} << " vPPB " << int{request.vppb} << " port " << int{request.port}
            << " LD " << request.ld;
}

TEST_P(VirtualSwitch, BindOfABoundVppbIsRefused) {
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.bind(0, 0, kMldPort, 1), ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.vppb(0, 0).ld, 0);
}

TEST_P(VirtualSwitch, LdThatAHostHasIsNotBoundAgain) {
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.bind(1, 0, kMldPort, 0), ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.bind(0, 1, kMldPort, 0), ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.vppb(1, 0).binding, VppbBinding::kUnbound);
    ASSERT_EQ(manager_.unbind(0, 0), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.bind(1, 0, kMldPort, 0), ReturnCode::kSuccess);
}

TEST_P(VirtualSwitch, UnbindOfWhatIsNotBoundIsRefused) {
    EXPECT_EQ(manager_.unbind(0, 0), ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.unbind(7, 0), ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.unbind(0, 4), ReturnCode::kInvalidInput);
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.unbind(0, 0, fmapi::UnbindOption{3}), ReturnCode::kInvalidInput);
}

TEST_P(VirtualSwitch, TakesAerEventsOfVppbsThatExist) {
    EXPECT_EQ(manager_.call<fmapi::GenerateAerEvent>({0, 0, 1u << 12, {}}).return_code, ReturnCode::kSuccess);
    EXPECT_EQ(manager_.call<fmapi::GenerateAerEvent>({0, 4, 1u << 12, {}}).return_code,
              ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.call<fmapi::GenerateAerEvent>({7, 0, 1u << 12, {}}).return_code,
              ReturnCode::kInvalidInput);
    EXPECT_EQ(manager_.call<fmapi::GenerateAerEvent>({0, 0, 0, {}}).return_code, ReturnCode::kInvalidInput);
}

TEST_P(VirtualSwitch, StatusNamesHostDeviceAndSlice) {
    ASSERT_EQ(manager_.bind(1, 2, kMldPort, 1), ReturnCode::kSuccess);
    const auto status = switch_.thread().vppbs();
    ASSERT_EQ(status.size(), 8U);
    EXPECT_EQ(status[0].state, VppbStatus::State::kUnbound);
    EXPECT_EQ(status[6].state, VppbStatus::State::kBound);
    EXPECT_EQ(status[6].host.value, "host1");
    EXPECT_EQ(status[6].device.value, "mld0");
    EXPECT_EQ(status[6].ld.value, 1);
    EXPECT_EQ(status[6].serial.value, 0x4d54000100000002U);
    EXPECT_EQ(status[6].offset, mebibytes(256));
    EXPECT_EQ(status[6].size, mebibytes(256));
}

TEST(VirtualSwitchBindings, RestartIsAPowerCycle) {
    TestSwitch sw;
    {
        Manager manager(sw.tcp());
        ASSERT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    }
    sw.restart();
    Manager manager(sw.tcp());
    EXPECT_EQ(manager.vppb(0, 0).binding, VppbBinding::kUnbound);
    EXPECT_EQ(manager.bind(1, 0, kMldPort, 0), ReturnCode::kSuccess);
}

}  // namespace
}  // namespace memtide::emul::test
