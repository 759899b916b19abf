// Random compositions on random sparse pods: whatever is asked for, what is planned can be had, keeps to its
// limits, and never touches what another has.
#include <algorithm>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric-manager/placement/pod.h"

namespace memtide::fm {
namespace {

class PlacementProperty : public ::testing::TestWithParam<unsigned> {
  protected:
    static constexpr int kSwitches = 4;
    static constexpr int kHosts = 6;

    unsigned pick(std::size_t n) { return static_cast<unsigned>(random() % n); }

    void build() {
        for (int at = 0; at < kSwitches; ++at)
            for (std::uint8_t port = 8; port < 8 + 3; ++port) {
                if (pick(4) == 0)
                    pod.add_sld(at, port, 1 + pick(4));
                else
                    pod.add_mld(at, port, {pick(4), pick(4), pick(3)}, pick(6));
            }
        for (std::uint8_t port = 20; port < 20 + 3 * 3; port = static_cast<std::uint8_t>(port + 3)) {
            std::vector<int> at;
            for (unsigned i = 0; i < 2 + pick(2); ++i) at.push_back(static_cast<int>(pick(kSwitches)));
            if (pick(3) == 0) {
                const std::vector<std::uint64_t> units(at.size(), 1 + pick(3));
                pod.add_multi_headed(DeviceKind::kSld, at, port, units);
            } else {
                pod.add_multi_headed(DeviceKind::kMld, at, port,
                                     {pick(4), pick(4), pick(3), pick(2), pick(2)}, pick(6));
            }
        }
        // Each host reaches some of the switches only.
        for (int host = 0; host < kHosts; ++host) {
            std::set<int> at;
            for (unsigned i = 0; i <= pick(3); ++i) at.insert(static_cast<int>(pick(kSwitches)));
            pod.add_host(fmt::format("host{}", host), {at.begin(), at.end()});
            if (pick(2) == 0)
                pod.inventory.host(HostId(fmt::format("host{}", host)))->windows = {
                    {"w", static_cast<std::uint8_t>(1 << pick(2)), gibibytes(64), gibibytes(64)}};
        }
    }

    PlacementRequest random_request() {
        PlacementRequest request;
        request.host = HostId(fmt::format("host{}", pick(kHosts)));
        request.size = kCxlGranule * (1 + pick(8));
        request.tenant = pick(2) == 0 ? "red" : "blue";
        request.most_parts = static_cast<std::uint8_t>(1 + pick(kMostParts));
        PlacementPolicy& policy = request.policy;
        policy.kind = static_cast<PlacementKind>(pick(3));
        if (policy.kind == PlacementKind::kBandwidth) policy.ways = static_cast<std::uint8_t>(1U << pick(3));
        policy.max_devices = static_cast<std::uint8_t>(1 + pick(kMostParts));
        if (pick(3) == 0) policy.max_percent_per_device = static_cast<std::uint8_t>(20 + pick(80));
        if (pick(3) == 0) policy.max_percent_per_switch = static_cast<std::uint8_t>(20 + pick(80));
        policy.exclusive_devices = pick(4) == 0;
        return request;
    }

    void check(const PlacementRequest& request, const Plan& plan) {
        Bytes sum;
        std::set<DeviceId> devices;
        std::set<VppbAddress> vppbs;
        for (const PartPlacement& part : plan.parts) {
            sum += part.size;
            EXPECT_TRUE(devices.insert(part.memory.device).second) << "two parts on one device";
            EXPECT_TRUE(vppbs.insert(part.where).second);
            EXPECT_TRUE(pod.inventory.shows(part.where.switch_id, part.port, part.memory))
                << "a part where its LD is not reached";
            EXPECT_FALSE(pod.inventory.ld(part.memory)->owner);
        }
        EXPECT_EQ(sum, request.size);
        EXPECT_LE(plan.parts.size(), std::min(request.most_parts, request.policy.max_devices));
        if (!plan.interleaved) return;
        EXPECT_EQ(plan.parts.size(), request.policy.ways);
        for (const PartPlacement& part : plan.parts) EXPECT_EQ(part.size, plan.parts[0].size);
    }

    // As a device does whose free memory is in pieces. Whether there was any carve.
    bool refuse_carves(const Plan& plan) {
        bool any = false;
        for (const PartPlacement& part : plan.parts) {
            const Device& device = *pod.inventory.device(part.memory.device);
            const Head* head = device.head_at(part.where.switch_id, part.port);
            const std::optional<Bytes> refused = refused_carve(device, head);
            if (!part.carve) continue;
            EXPECT_TRUE(!refused || part.size < *refused) << "planned though it was refused";
            pod.inventory.note_refused_carve(part.memory, part.size);
            EXPECT_EQ(refused_carve(device, head), part.size);
            EXPECT_LT(largest_carve(device, head), part.size);
            any = true;
        }
        return any;
    }

    // The share of the host behind any device or switch, once the plan was carried out.
    void check_limits(const PlacementRequest& request, const Plan& plan) {
        std::map<DeviceId, Bytes> by_device;
        std::map<SwitchId, Bytes> by_switch;
        Bytes total;
        for (const Inventory::Claim* claim : pod.inventory.claims_of(request.host)) {
            by_device[claim->memory.device] += claim->size;
            by_switch[claim->where.switch_id] += claim->size;
            total += claim->size;
        }
        for (const PartPlacement& part : plan.parts) {
            EXPECT_LE(by_device[part.memory.device].value * 100,
                      total.value * request.policy.max_percent_per_device);
            EXPECT_LE(by_switch[part.where.switch_id].value * 100,
                      total.value * request.policy.max_percent_per_switch);
            if (!request.policy.exclusive_devices) continue;
            for (const LogicalDevice& ld : pod.inventory.device(part.memory.device)->lds)
                if (ld.owner && pod.inventory.claim_of(*ld.owner)->tenant != request.tenant)
                    ADD_FAILURE() << "another tenant has memory of the device";
        }
    }

    std::mt19937 random{GetParam()};
    Pod pod{kSwitches, 3};
};

TEST_P(PlacementProperty, PlansKeepToTheirLimitsAndInvariantsHold) {
    build();
    const Bytes capacity = pod.inventory.pool().capacity;
    int placed = 0;
    for (int i = 0; i < 400; ++i) {
        if (!pod.taken.empty() && pick(3) == 0) {
            pod.release(std::next(pod.taken.begin(), pick(pod.taken.size()))->first);
        } else {
            const PlacementRequest request = random_request();
            const Outcome<Plan> plan = place(pod.inventory, request);
            if (!plan) {
                EXPECT_FALSE(plan.error().detail.empty());
                continue;
            }
            ++placed;
            check(request, *plan);
            if (pick(4) == 0 && refuse_carves(*plan)) continue;
            pod.take(*plan, fmt::format("c-{}", i), request.host.value, request.tenant);
            check_limits(request, *plan);
        }
        ASSERT_EQ(pod.wrong(), std::vector<std::string>{}) << "after operation " << i;
        ASSERT_EQ(pod.inventory.pool().capacity, capacity);
    }
    EXPECT_GT(placed, 40);
    while (!pod.taken.empty()) pod.release(pod.taken.begin()->first);
    EXPECT_EQ(pod.inventory.pool().free, capacity);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlacementProperty, ::testing::Range(1u, 41u));

}  // namespace
}  // namespace memtide::fm
