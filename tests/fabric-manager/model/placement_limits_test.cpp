#include "fabric-manager/model/placement_limits.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

const HostId kHost("host0");

class PlacementLimitsTest : public ::testing::Test {
  protected:
    PlacementLimitsTest() {
        defaults.all = {50, 80, false};
        defaults.hosts[kHost] = {60, {}, {}};
        defaults.tenants["blue"] = {25, {}, true};
    }
    // Resolves a request; its policy is what it asked for.
    LimitOrigins resolve(const PlacementLimits& asked, std::optional<std::string> tenant = {},
                         bool may_loosen = true, const HostId& host = kHost) {
        policy = {};
        if (asked.max_percent_per_device) policy.max_percent_per_device = *asked.max_percent_per_device;
        if (asked.max_percent_per_switch) policy.max_percent_per_switch = *asked.max_percent_per_switch;
        if (asked.exclusive_devices) policy.exclusive_devices = *asked.exclusive_devices;
        return apply_defaults(defaults, host, tenant, asked, may_loosen, policy);
    }

    PlacementDefaults defaults;
    PlacementPolicy policy;
};

TEST_F(PlacementLimitsTest, TenantGoesBeforeHostAndHostBeforeTheRest) {
    EXPECT_EQ(resolve({}, "blue").max_percent_per_device, "the default for tenant blue");
    EXPECT_EQ(policy.max_percent_per_device, 25);
    EXPECT_TRUE(policy.exclusive_devices);
    EXPECT_EQ(policy.max_percent_per_switch, 80);
    EXPECT_EQ(resolve({}, "red").max_percent_per_device, "the default for host host0");
    EXPECT_EQ(policy.max_percent_per_device, 60);
    EXPECT_EQ(resolve({}, {}, true, HostId("host1")).max_percent_per_device, "the default");
    EXPECT_EQ(policy.max_percent_per_device, 50);
}

TEST_F(PlacementLimitsTest, RequestsCountInsteadOfDefaults) {
    const LimitOrigins origins = resolve({100, {}, false}, "blue");
    EXPECT_EQ(policy.max_percent_per_device, 100);
    EXPECT_FALSE(policy.exclusive_devices);
    EXPECT_EQ(origins.max_percent_per_device, "");
    EXPECT_EQ(origins.max_percent_per_switch, "the default");
}

TEST_F(PlacementLimitsTest, WhoMayOnlyTightenGetsTheStricter) {
    resolve({100, 10, false}, "blue", false);
    EXPECT_EQ(policy.max_percent_per_device, 25);
    EXPECT_EQ(policy.max_percent_per_switch, 10);
    EXPECT_TRUE(policy.exclusive_devices);
}

TEST_F(PlacementLimitsTest, WithoutDefaultsThePolicyStaysAsItIs) {
    defaults = {};
    resolve({30, {}, {}}, "blue", false);
    EXPECT_EQ(policy.max_percent_per_device, 30);
    EXPECT_EQ(policy.max_percent_per_switch, 100);
}

}  // namespace
}  // namespace memtide::fm
