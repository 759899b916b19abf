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
    c.placement = {PlacementKind::kBandwidth, 2, 4, 50, 75, true, true, true};
    Part part;
    part.number = 3;
    part.region = 2;
    part.size = mebibytes(256);
    part.state = CompositionState::kDraining;
    part.reason = Reason{"device-vanished", "gone"};
    part.memory = {DeviceId("mld-1"), LdId{3}};
    part.serial = SerialNumber{0xffff'ffff'ffff'fffe};
    part.port = 4;
    part.where = {SwitchId("switch0"), 1, 2};
    part.node = 1;
    part.region_name = "region0";
    part.release_requested = true;
    part.forced = true;
    part.replacement = true;
    part.carve = Carve{{{LdId{3}, Bytes{}}}, {{LdId{3}, mebibytes(512)}}, true};
    part.drain_deadline = t;
    part.offline_revision = 12;
    part.boot_id = "b";
    part.verified_pages = 256;
    c.parts = {part, Part{}};
    c.next_part = 4;
    c.exchange = Exchange{mebibytes(1024), t, {1}, {2, 3}};
    c.failed = true;
    c.was_online = true;
    c.created = t;
    c.updated = t + std::chrono::milliseconds(1);
    c.ttl = std::chrono::seconds(60);
    c.expires = t + std::chrono::seconds(60);
    c.forced = true;
    c.adopted = true;
    c.release_requested = true;
    c.undone = {"bind"};
    c.steps = {{"place", 0, t, t, "LD 3"}, {"bind", 3, t, std::nullopt, ""}};
    c.manager_overhead_ms = 3.25;
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

TEST(Record, PartsThatSayWhetherTheyWereErasedAreReadAsAnyOther) {
    const Composition c = full();
    std::string record = encode_record(c);
    const std::string_view number = R"("number":)";
    record.insert(record.find(number), R"("erased":true,)");
    const Result<Composition> read = decode_composition(record);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, c);
}

TEST(Record, RecordOfSchemaVersion2IsReadAsACompositionOfOnePart) {
    const Result<Composition> read = decode_composition(
        R"({"id":"c-1","sequence":4,"host":"host0","size":268435456,"state":"Online","revision":6,)"
        R"("device":"mld-1","ld":0,"serial":7,"port":2,"switch":"switch0","vcs":0,"vppb":1,"created":1,)"
        R"("updated":2,"phase_started":0,"node":1,"region":"region0","boot_id":"b","waiting_for":"x",)"
        R"("steps":[{"name":"bind","started":1,"ended":2}]})");
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->parts.size(), 1u);
    const Part& part = read->parts[0];
    EXPECT_EQ(part.size, mebibytes(256));
    EXPECT_EQ(part.state, CompositionState::kOnline);
    EXPECT_EQ(part.where, (VppbAddress{SwitchId("switch0"), 0, 1}));
    EXPECT_EQ(part.region_name, "region0");
    EXPECT_EQ(part.boot_id, "b");
    EXPECT_TRUE(read->was_online);
    EXPECT_EQ(read->next_part, 1u);
    EXPECT_EQ(state_of(*read), CompositionState::kOnline);
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
