// Databases of earlier versions, made by the SQL that those versions used.
#include <sqlite3.h>

#include "tests/fabric-manager/store/store_fixture.h"

namespace memtide::fm {
namespace {

constexpr const char* kCommon = R"(
CREATE TABLE compositions(id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, host TEXT NOT NULL,
                          state TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE events(id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE hosts(host TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT;
CREATE TABLE idempotency(n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body_hash TEXT NOT NULL,
                         answer TEXT NOT NULL) STRICT;
INSERT INTO hosts VALUES('host0', 41), ('host1', 7);
INSERT INTO events VALUES(5, '{"id":5,"time":1700000000000000000,"type":"switch.up"}'),
                         (6, '{"id":6,"time":1700000000000000001,"type":"host.agent"}');
PRAGMA application_id=1296387412;
)";
constexpr const char* kVersion1 = R"(
CREATE TABLE lds(serial INTEGER PRIMARY KEY, size INTEGER NOT NULL, condition INTEGER NOT NULL,
                 detail TEXT NOT NULL) STRICT;
INSERT INTO lds VALUES(1, 268435456, 1, ''), (-1, 536870912, 2, 'media error');
PRAGMA user_version=1;
)";
constexpr const char* kVersion2 = R"(
CREATE TABLE quarantine(serial INTEGER PRIMARY KEY, size INTEGER NOT NULL, detail TEXT NOT NULL) STRICT;
INSERT INTO quarantine VALUES(-1, 536870912, 'media error');
PRAGMA user_version=2;
)";

class Migration : public StoreFixture, public ::testing::WithParamInterface<const char*> {
  protected:
    void make(const std::string& more = "") {
        const std::string body =
            R"({"id":"c-old","sequence":3,"host":"host0","size":268435456,"state":"Pending","revision":9,)"
            R"("device":"mld-0000000000000001","ld":2,"serial":77,"port":2,"switch":"switch0","vcs":0,)"
            R"("vppb":1,"created":1700000000000000000,"updated":1700000000000000000,)"
            R"("phase_started":1700000000000000000,"steps":[]})";
        std::string sql = std::string(kCommon) + GetParam() + more;
        sql += "INSERT INTO compositions VALUES('c-old', 3, 'host0', 'Pending', 9, '" + body + "');";
        sql += "INSERT INTO idempotency VALUES(8, 'key', 'hash', '" + body + "');";
        sqlite3* raw = nullptr;
        ASSERT_EQ(sqlite3_open(options.path.c_str(), &raw), SQLITE_OK);
        char* error = nullptr;
        ASSERT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
        sqlite3_close(raw);
    }
};

TEST_P(Migration, EverythingIsThereAfterwardsAndAtTheNextStart) {
    make();
    for (int i = 0; i < 2; ++i) {
        const auto store = open();
        const Result<StoreContents> contents = store->load();
        ASSERT_TRUE(contents) << contents.error().message;
        ASSERT_EQ(contents->compositions.size(), 1u);
        EXPECT_EQ(contents->compositions[0].id, CompositionId("c-old"));
        EXPECT_EQ(contents->compositions[0].sequence, 3u);
        ASSERT_EQ(contents->compositions[0].parts.size(), 1u);
        EXPECT_EQ(contents->compositions[0].parts[0].serial, SerialNumber{77});
        ASSERT_EQ(contents->quarantine.size(), 1u);
        EXPECT_EQ(contents->quarantine[0].serial, SerialNumber{~0ull});
        EXPECT_EQ(contents->quarantine[0].detail, "media error");
        EXPECT_EQ(contents->hosts.size(), 2u);
        ASSERT_EQ(contents->idempotency.size(), 1u);
        EXPECT_EQ(contents->idempotency[0].answer.id, CompositionId("c-old"));
        EXPECT_EQ(contents->last_event, 6u);
        EXPECT_EQ(events(*store, 0).size(), 2u);
        EXPECT_EQ(recovery(*store), "");
    }
    Mutation next = put("c-old", 10);
    next.compositions[0].composition.sequence = 3;
    EXPECT_TRUE(apply(*open(), next));
}

TEST_P(Migration, ADatabaseThatCannotBeMigratedStaysAsItWas) {
    make("CREATE TABLE meta(unexpected INTEGER) STRICT;");
    EXPECT_NE(refusal().find("migrate from schema version"), std::string::npos) << refusal();
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(options.path.c_str(), &raw), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(raw, "SELECT host FROM compositions; DROP TABLE meta", nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(raw);
    EXPECT_EQ(compositions(*open()), 1u);
}

INSTANTIATE_TEST_SUITE_P(Versions, Migration, ::testing::Values(kVersion1, kVersion2),
                         [](const auto& info) { return info.index == 0 ? "From1" : "From2"; });

}  // namespace
}  // namespace memtide::fm
