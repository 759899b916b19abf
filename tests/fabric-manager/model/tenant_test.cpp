#include "fabric-manager/model/tenant.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

using testing::HasSubstr;

Composition composition(const std::string& id, std::optional<std::string> tenant, std::uint64_t mib) {
    Composition result;
    result.id = CompositionId(id);
    result.tenant = std::move(tenant);
    result.size = mebibytes(mib);
    return result;
}
CompositionRequest request(std::optional<std::string> tenant, std::uint64_t mib,
                           const std::string& host = "host0") {
    CompositionRequest result;
    result.host = HostId(host);
    result.tenant = std::move(tenant);
    result.size = mebibytes(mib);
    return result;
}

TEST(TenantLedger, HoldingTwiceCountsOnceAndLettingGoTwiceIsHarmless) {
    TenantLedger ledger;
    ledger.hold(composition("c-1", "blue", 256));
    ledger.hold(composition("c-1", "blue", 256));
    EXPECT_EQ(ledger.used("blue"), (TenantUsage{mebibytes(256), 1}));
    ledger.hold(composition("c-1", "blue", 512));  // it has grown
    EXPECT_EQ(ledger.used("blue"), (TenantUsage{mebibytes(512), 1}));
    ledger.let_go(CompositionId("c-1"));
    ledger.let_go(CompositionId("c-1"));
    EXPECT_EQ(ledger.used("blue"), TenantUsage{});
}

TEST(TenantLedger, IdsThatContainEachOtherAreDifferent) {
    TenantLedger ledger;
    ledger.hold(composition("1", "a", 1));
    ledger.hold(composition("11", "aa", 2));
    ledger.let_go(CompositionId("1"));
    EXPECT_EQ(ledger.used("a"), TenantUsage{});
    EXPECT_EQ(ledger.used("aa"), (TenantUsage{mebibytes(2), 1}));
}

TEST(TenantLedger, TheSumsAreThoseOfWhatIsHeldWhateverHappens) {
    std::mt19937 random(7);
    TenantLedger ledger;
    std::map<std::string, Composition> held;
    for (int i = 0; i < 10'000; ++i) {
        const std::string id = "c-" + std::to_string(random() % 50);
        if (random() % 3 == 0) {
            ledger.let_go(CompositionId(id));
            held.erase(id);
        } else {
            const auto tenant =
                random() % 4 == 0 ? std::nullopt : std::optional("t" + std::to_string(random() % 3));
            held[id] = composition(id, tenant, random() % 100);
            ledger.hold(held[id]);
        }
        std::map<std::string, TenantUsage> expected;
        for (const auto& [key, c] : held)
            if (c.tenant) {
                expected[*c.tenant].bytes.value += c.size.value;
                ++expected[*c.tenant].compositions;
            }
        for (const char* tenant : {"t0", "t1", "t2"}) ASSERT_EQ(ledger.used(tenant), expected[tenant]);
    }
}

class Quotas : public testing::Test {
  protected:
    std::string code(const CompositionRequest& wanted) {
        const auto checked = check_tenant(tenants_, ledger_, wanted);
        detail_ = checked ? "" : checked.error().detail;
        return checked ? "" : checked.error().code;
    }
    Tenants tenants_{{"blue", {.bytes = mebibytes(512), .compositions = 2, .hosts = {HostId("host0")}}},
                     {"red", {.bytes = {}, .compositions = {}, .hosts = {}}},
                     {"none", {.bytes = Bytes{0}, .compositions = {}, .hosts = {}}}};
    TenantLedger ledger_;
    std::string detail_;
};

TEST_F(Quotas, WhatFitsExactlyIsAllowed) {
    EXPECT_EQ(code(request("blue", 512)), "");
    ledger_.hold(composition("c-1", "blue", 256));
    EXPECT_EQ(code(request("blue", 256)), "");
}

TEST_F(Quotas, ARefusalSaysWhatIsUsedAndAllowed) {
    ledger_.hold(composition("c-1", "blue", 256));
    EXPECT_EQ(code(request("blue", 512)), "quota-exceeded");
    EXPECT_THAT(detail_, HasSubstr("uses 256MiB of the 512MiB"));
    ledger_.hold(composition("c-2", "blue", 0));
    EXPECT_EQ(code(request("blue", 1)), "quota-exceeded");
    EXPECT_THAT(detail_, HasSubstr("has 2 of the 2 compositions"));
}

TEST_F(Quotas, NoSumOverflows) {
    CompositionRequest huge = request("blue", 1);
    huge.size.value = ~0ULL;
    EXPECT_EQ(code(huge), "quota-exceeded");
    ledger_.hold(composition("c-1", "blue", 4096));  // more than allowed: the quota was lowered
    EXPECT_EQ(code(request("blue", 1)), "quota-exceeded");
}

TEST_F(Quotas, OnlyKnownTenantsAndTheirHosts) {
    EXPECT_EQ(code(request("green", 1)), "unknown-tenant");
    EXPECT_EQ(code(request("blue", 1, "host1")), "host-not-allowed");
    EXPECT_EQ(code(request("red", 1, "host1")), "");
    EXPECT_EQ(code(request("none", 1)), "quota-exceeded");
    EXPECT_EQ(code(request(std::nullopt, 100'000)), "");
    tenants_.clear();
    EXPECT_EQ(code(request("anybody", 1)), "");
}

}  // namespace
}  // namespace memtide::fm
