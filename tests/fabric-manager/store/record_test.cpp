#include "fabric-manager/store/record.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

Composition full() {
    const Time t = Time(std::chrono::seconds(1'800'000'000)) + std::chrono::microseconds(5);
    Composition c;
    c.id = CompositionId("c-7f3k2m9q1x");
    c.sequence = 9;
    c.host = HostId("host0");
    c.size = mebibytes(512);
    c.tenant = "red";
    c.labels = {{"app", "redis \"cache\""}};
    c.state = CompositionState::kDraining;
    c.revision = 17;
    c.reason = Reason{"bind-refused", "because"};
    c.memory = {DeviceId("mld-1"), LdId{3}};
    c.serial = SerialNumber{0xffff'ffff'ffff'fffe};
    c.port = 4;
    c.where = {SwitchId("switch0"), 1, 2};
    c.node = 1;
    c.region = "region0";
    c.created = t;
    c.updated = t + std::chrono::milliseconds(1);
    c.ttl = std::chrono::seconds(60);
    c.expires = t + std::chrono::seconds(60);
    c.forced = true;
    c.adopted = true;
    c.release_requested = true;
    c.waiting_for = "the agent";
    c.holders = {{"memory32", 12, "redis", mebibytes(128)}, {"memory33", std::nullopt, "", Bytes{}}};
    c.undone = {"bind"};
    c.steps = {{"place", t, t, "LD 3"}, {"bind", t, std::nullopt, ""}};
    c.manager_overhead_ms = 3.25;
    c.carve = Carve{{{LdId{3}, Bytes{}}}, {{LdId{3}, mebibytes(512)}}, true};
    c.drain_deadline = t;
    c.offline_revision = 12;
    c.boot_id = "b";
    c.erased = true;
    c.phase_started = t;
    c.phase_waited_ms = 1.5;
    return c;
}

TEST(Record, CompositionIsReadBackAsItWasWritten) {
    const Composition c = full();
    EXPECT_EQ(*decode_composition(encode_record(c)), c);
    const Composition empty;
    EXPECT_EQ(*decode_composition(encode_record(empty)), empty);
}

TEST(Record, EventIsReadBackAsItWasWritten) {
    Event event;
    event.id = 5;
    event.time = Time(std::chrono::seconds(1));
    event.type = "composition.state";
    event.composition = CompositionId("c-1");
    event.host = HostId("host0");
    event.switch_id = SwitchId("switch0");
    event.device = DeviceId("mld-1");
    event.state = "Online";
    event.code = "x";
    event.detail = "y";
    event.forced = true;
    EXPECT_EQ(*decode_event(encode_record(event)), event);
    EXPECT_EQ(*decode_event(encode_record(Event{})), Event{});
}

TEST(Record, DamagedRecordIsAnErrorAndNoCrash) {
    const std::string good = encode_record(full());
    for (std::size_t cut = 0; cut < good.size(); ++cut)
        EXPECT_EQ(decode_composition(good.substr(0, cut)).error().code, ErrorCode::kProtocol) << cut;
    for (const char* text : {"", "[]", "null", "{}", R"({"id":1})", R"({"id":"c","sequence":-1})"}) {
        EXPECT_FALSE(decode_composition(text)) << text;
        EXPECT_FALSE(decode_event(text)) << text;
    }
}

}  // namespace
}  // namespace memtide::fm
