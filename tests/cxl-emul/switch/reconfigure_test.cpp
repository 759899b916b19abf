#include "cxl-emul/switch/reconfigure.h"

#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/in_process.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;
using fmapi::VcsState;

class Reconfigure : public ::testing::Test {
  protected:
    InProcess fabric_;

    std::optional<ErrorCode> error(const VcsChange& change) {
        const auto done = reconfigure(fabric_.model(), change);
        if (done) return std::nullopt;
        return done.error().code;
    }
    bool succeeds(const VcsChange& change) { return reconfigure(fabric_.model(), change).has_value(); }
    fmapi::VirtualSwitch vcs(std::uint8_t id) {
        const fmapi::GetVirtualSwitchInfoRequest request{.vcss = {id}};
        return fabric_
            .get<fmapi::GetVirtualSwitchInfo>(request,
                                              fmapi::GetVirtualSwitchInfoResponse::answering(request))
            .vcss.at(0);
    }
};

TEST_F(Reconfigure, ARemovedVcsIsGoneAndItsIdIsFree) {
    ASSERT_TRUE(succeeds(RemoveVcs{0}));
    EXPECT_EQ(vcs(0).state, VcsState::kInvalidVcs);
    const auto identity = fabric_.get<fmapi::IdentifySwitchDevice>();
    EXPECT_EQ(identity.vcss, 1);
    EXPECT_FALSE(identity.active_vcss.test(0));
    EXPECT_EQ(identity.total_vppbs, 4);
    EXPECT_EQ(fabric_.code<fmapi::BindVppb>({0, 0, kMldPort, 0}), ReturnCode::kInvalidInput);

    ASSERT_TRUE(succeeds(AddVcs{{.id = 7, .upstream_port = 0, .vppbs = 2}}));
    EXPECT_EQ(vcs(7).state, VcsState::kEnabled);
    EXPECT_EQ(vcs(7).total_vppbs, 2);
    fabric_.bind(7, 1, kMldPort, 0);
}

TEST_F(Reconfigure, OthersGoOnMeanwhile) {
    ASSERT_EQ(fabric_.code<fmapi::BindVppb>({1, 0, kMldPort, 0}), ReturnCode::kBackgroundStarted);
    ASSERT_TRUE(succeeds(RemoveVcs{0}));
    ASSERT_TRUE(succeeds(AddVcs{{.id = 0, .upstream_port = 0, .vppbs = 9}}));
    fabric_.end();
    EXPECT_EQ(fabric_.vppb(1, 0), (fmapi::Vppb{fmapi::VppbBinding::kBoundLd, kMldPort, 0}));
}

TEST_F(Reconfigure, ADisabledVcsIsListedAndTakesNothing) {
    ASSERT_TRUE(succeeds(EnableVcs{0, false}));
    EXPECT_EQ(vcs(0).state, VcsState::kDisabled);
    EXPECT_EQ(vcs(0).total_vppbs, 4);
    EXPECT_EQ(fabric_.code<fmapi::BindVppb>({0, 0, kMldPort, 0}), ReturnCode::kInvalidInput);
    ASSERT_TRUE(succeeds(EnableVcs{0, true}));
    fabric_.bind(0, 0, kMldPort, 0);
}

TEST_F(Reconfigure, VppbsComeAndGoAtTheEnd) {
    ASSERT_TRUE(succeeds(ResizeVcs{0, 6}));
    fabric_.bind(0, 5, kMldPort, 0);
    EXPECT_EQ(error(ResizeVcs{0, 5}), ErrorCode::kConflict);
    ASSERT_EQ(fabric_.code<fmapi::UnbindVppb>({0, 5}), ReturnCode::kBackgroundStarted);
    EXPECT_EQ(error(ResizeVcs{0, 5}), ErrorCode::kConflict);  // not yet
    fabric_.end();
    ASSERT_TRUE(succeeds(ResizeVcs{0, 1}));
    EXPECT_EQ(fabric_.code<fmapi::BindVppb>({0, 1, kMldPort, 0}), ReturnCode::kInvalidInput);
}

TEST_F(Reconfigure, WhatIsBoundKeepsItsVcs) {
    fabric_.bind(0, 2, kMldPort, 0);
    EXPECT_EQ(error(RemoveVcs{0}), ErrorCode::kConflict);
    EXPECT_EQ(error(EnableVcs{0, false}), ErrorCode::kConflict);
    EXPECT_EQ(fabric_.vppb(0, 2).binding, fmapi::VppbBinding::kBoundLd);
}

TEST_F(Reconfigure, WhatCannotBeIsRefused) {
    EXPECT_EQ(error(RemoveVcs{2}), ErrorCode::kNotFound);
    EXPECT_EQ(error(EnableVcs{2, true}), ErrorCode::kNotFound);
    EXPECT_EQ(error(ResizeVcs{2, 1}), ErrorCode::kNotFound);
    EXPECT_EQ(error(ResizeVcs{0, 0}), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error(AddVcs{{.id = 1, .upstream_port = 0, .vppbs = 1}}), ErrorCode::kAlreadyExists);
    EXPECT_EQ(error(AddVcs{{.id = 2, .upstream_port = 0, .vppbs = 1}}), ErrorCode::kAlreadyExists);
    EXPECT_EQ(error(AddVcs{{.id = 2, .upstream_port = kMldPort, .vppbs = 1}}), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error(AddVcs{{.id = 2, .upstream_port = kNoPort, .vppbs = 1}}), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error(AddVcs{{.id = 2, .upstream_port = 0, .vppbs = 0}}), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error(AddVcs{{.id = 255, .upstream_port = 0, .vppbs = 1}}), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace memtide::emul::test
