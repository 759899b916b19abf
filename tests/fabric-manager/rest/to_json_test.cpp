// What is answered is what openapi.json says.
#include "fabric-manager/rest/to_json.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json/write.h"
#include "fabric-manager/rest/openapi.h"
#include "tests/fabric-manager/rest/schema.h"

namespace memtide::fm {
namespace {

namespace json = boost::json;
using testing::IsEmpty;

const json::value& document() {
    static const json::value value = json::parse(openapi_document());
    return value;
}

std::vector<std::string> mistakes(const std::string& schema, const json::value& value) {
    return Schema(document(), schema).mistakes(value);
}

Composition full_composition() {
    Composition c;
    c.id = CompositionId("c-7f3k2m9q1x");
    c.host = HostId("host0");
    c.size = mebibytes(256);
    c.tenant = "t1";
    c.labels = {{"app", "redis"}};
    c.state = CompositionState::kOnline;
    c.revision = 17;
    c.reason = Reason{"bind-refused", "the switch said no"};
    Part part;
    part.size = c.size;
    part.state = CompositionState::kOnline;
    part.memory = {DeviceId("mld-4d54000100000000"), LdId{0}};
    part.serial = {0x4d54000100000001ULL};
    part.where = {SwitchId("switch0"), 0, 1};
    part.node = 1;
    part.region_name = "region0";
    part.waiting_for = "the agent of host0 to online the memory";
    part.holders = {{"memory32", 12, "redis-server", mebibytes(1)}, {"memory33", std::nullopt, "", {}}};
    c.parts = {part};
    c.exchange = Exchange{mebibytes(512), Time(std::chrono::seconds(60)), {0}, {1, 2}};
    c.ttl = std::chrono::seconds(60);
    c.expires = Time(std::chrono::seconds(60));
    c.undone = {"unbound vPPB 1"};
    c.steps = {{"place", 0, Time{}, Time(std::chrono::microseconds(12'300)), ""},
               {"bind", 0, Time{}, std::nullopt, ""}};
    c.manager_overhead_ms = 3.2;
    return c;
}

TEST(RestJson, CompositionsAreAsDescribed) {
    EXPECT_THAT(mistakes("Composition", to_json(full_composition())), IsEmpty());
    EXPECT_THAT(mistakes("Composition", to_json(Composition{})), IsEmpty());
}

TEST(RestJson, ACompositionShowsWhatItIs) {
    const json::object c = to_json(full_composition());
    EXPECT_EQ(c.at("size"), 268435456);
    EXPECT_EQ(c.at("parts").at(0).at("serial"), "0x4d54000100000001");
    EXPECT_EQ(c.at("node"), 1);
    EXPECT_EQ(c.at("state"), "Online");
    EXPECT_EQ(c.at("exchange").at("size_before"), 536870912);
    EXPECT_EQ(json::serialize(c.at("exchange").at("coming")), "[1,2]");
    EXPECT_EQ(c.at("parts").at(0).at("vppb"), 1);
    EXPECT_EQ(c.at("expires"), "1970-01-01T00:01:00.000Z");
    EXPECT_EQ(c.at("steps").at(0).at("duration_ms"), 12.3);
    EXPECT_TRUE(c.at("steps").at(1).at("duration_ms").is_null());
    EXPECT_TRUE(c.at("holders").at(1).at("pid").is_null());
}

TEST(RestJson, WhatDoesNotApplyIsNull) {
    const json::object c = to_json(Composition{});
    for (const auto* key : {"tenant", "reason", "node", "ttl_seconds", "expires", "waiting_for", "exchange"})
        EXPECT_TRUE(c.at(key).is_null()) << key;
}

TEST(RestJson, ASchemaMistakeWouldBeFound) {
    json::object c = to_json(full_composition());
    c["size"] = "256MiB";
    c["surprise"] = 1;
    c.erase("host");
    EXPECT_EQ(mistakes("Composition", c).size(), 3U);
}

TEST(RestJson, TheDesiredStateIsAsDescribed) {
    DesiredState desired{12, HostId("host0"), {}};
    desired.regions.push_back({{CompositionId("c-1"), 0},
                               {{0x4d54000100000001ULL}, {0x4d54000100000002ULL}},
                               mebibytes(512),
                               false,
                               true,
                               Time{},
                               VerifyErased{64, ErasedPattern::kUniform}});
    const json::object value = to_json(desired);
    EXPECT_THAT(mistakes("Desired", value), IsEmpty());
    EXPECT_EQ(json::serialize(value.at("regions").at(0).at("verify_erased")),
              R"({"samples":64,"pattern":"uniform"})");
    desired.regions[0].verify = VerifyErased{};
    EXPECT_EQ(json::serialize(to_json(desired).at("regions").at(0).at("verify_erased")),
              R"({"samples":256})");
    desired.regions[0].verify.reset();
    EXPECT_FALSE(to_json(desired).at("regions").at(0).as_object().contains("verify_erased"));
    EXPECT_EQ(value.at("regions").at(0).at("desired"), "offline");
    EXPECT_EQ(value.at("regions").at(0).at("force"), true);
}

TEST(RestJson, EventsAreAsDescribed) {
    EXPECT_THAT(mistakes("Event", to_json(Event{})), IsEmpty());
    Event event;
    event.id = 3;
    event.type = "composition.state";
    event.composition = CompositionId("c-1");
    event.host = HostId("host0");
    event.state = "Online";
    EXPECT_THAT(mistakes("Event", to_json(event)), IsEmpty());
    EXPECT_EQ(to_json(event).at("composition"), "c-1");
}

Device mld() {
    Device device;
    device.id = DeviceId("mld-4d54000100000000");
    device.switch_id = SwitchId("switch0");
    device.serial = {0x4d54000100000000ULL};
    device.size = gibibytes(1);
    LogicalDevice bound;
    bound.id = LdId{0};
    bound.serial = {0x4d54000100000001ULL};
    bound.use = LdUse::kBound;
    bound.planned = mebibytes(256);
    bound.owner = PartId{CompositionId("c-1"), 0};
    bound.bound_at = VppbAddress{SwitchId("switch0"), 0, 1};
    device.lds = {bound, LogicalDevice{}};
    return device;
}

TEST(RestJson, TheInventoryIsAsDescribed) {
    EXPECT_THAT(mistakes("Device", to_json(mld())), IsEmpty());
    Switch item;
    item.id = SwitchId("switch0");
    item.error = "down";
    item.last_seen = Time{};
    item.ports = {Port{}, Port{2, PortRole::kDownstream, true, 8, 16, mld().id}};
    Vppb vppb{0, BindingStatus::kBoundLd, 2, LdId{0}, PartId{CompositionId("c-1"), 0}};
    item.vcss = {Vcs{0, true, 0, HostId("host0"), {vppb, Vppb{}}}};
    EXPECT_THAT(mistakes("Switch", to_json(item)), IsEmpty());
    Host host;
    host.id = HostId("host0");
    host.attach = {{SwitchId("switch0"), 0}};
    host.last_report = Time{};
    host.memdevs = {{"mem0", {0x4d54000100000001ULL}, mebibytes(256)}};
    host.warnings = {{"auto-online", "x"}};
    EXPECT_THAT(mistakes("Host", to_json(host, mebibytes(256), true)), IsEmpty());
    EXPECT_EQ(to_json(host, mebibytes(256), true).at("agent").at("connected"), true);
    EXPECT_THAT(mistakes("Host", to_json(Host{}, Bytes{}, false)), IsEmpty());
    const auto away = to_json(Host{}, Bytes{}, false, Time(std::chrono::seconds(1)));
    EXPECT_THAT(mistakes("Host", away), IsEmpty());
    EXPECT_EQ(away.at("agent").at("away_since"), "1970-01-01T00:00:01.000Z");
}

TEST(RestJson, DevicesAppendedAsTextAreTheSame) {
    for (const Device& device : {mld(), Device{}}) {
        std::string text = "x";
        append_json(text, device);
        EXPECT_EQ(text, "x" + memtide::json::write(to_json(device)));
    }
}

TEST(RestJson, ThePoolIsAsDescribed) {
    Pool pool;
    pool.capacity = gibibytes(1);
    pool.devices.resize(1);
    Fragmentation scattered;
    scattered.switches.resize(1);
    Device held;
    held.held = "it comes and goes";
    const auto json = to_json(pool, scattered, {{pool.devices[0].id, held}});
    EXPECT_THAT(mistakes("Pool", json), IsEmpty());
    EXPECT_EQ(json.at("devices").at(0).at("held"), "it comes and goes");
    EXPECT_THAT(mistakes("Pool", to_json(pool, scattered, {})), IsEmpty());
}

}  // namespace
}  // namespace memtide::fm
