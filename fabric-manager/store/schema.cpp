#include "fabric-manager/store/schema.h"

#include <array>
#include <future>
#include <memory>

#include <fmt/format.h>
#include <sqlite3.h>

#include "fabric-manager/store/row_change.h"

namespace memtide::fm {

namespace {

constexpr const char* kTables = R"(
CREATE TABLE compositions(id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, revision INTEGER NOT NULL,
                          body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
CREATE TABLE events(id INTEGER PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
CREATE TABLE quarantine(serial INTEGER PRIMARY KEY, size INTEGER NOT NULL, detail TEXT NOT NULL,
                        sum INTEGER NOT NULL) STRICT;
CREATE TABLE hosts(host TEXT PRIMARY KEY, revision INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;
CREATE TABLE idempotency(n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body_hash TEXT NOT NULL,
                         answer TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;
)";

// 1 -> 2: that memory is erased is not kept any more, only that it could not be (condition 2).
constexpr const char* kTo2 = R"(
CREATE TABLE quarantine(serial INTEGER PRIMARY KEY, size INTEGER NOT NULL, detail TEXT NOT NULL) STRICT;
INSERT INTO quarantine SELECT serial, size, detail FROM lds WHERE condition = 2;
DROP TABLE lds;
)";

// 2 -> 3: a checksum in every row; host and state of a composition are in its body. The sums are set by
// memtide_sum below.
constexpr const char* kTo3 = R"(
ALTER TABLE compositions RENAME TO old_compositions;
ALTER TABLE events RENAME TO old_events;
ALTER TABLE quarantine RENAME TO old_quarantine;
ALTER TABLE hosts RENAME TO old_hosts;
ALTER TABLE idempotency RENAME TO old_idempotency;
)";
constexpr const char* kCopyTo3 = R"(
INSERT INTO compositions SELECT id, sequence, revision, body,
       memtide_sum(1, id, sequence, revision, body, '') FROM old_compositions;
INSERT INTO events SELECT id, body, memtide_sum(2, '', id, 0, body, '') FROM old_events;
INSERT INTO quarantine SELECT serial, size, detail, memtide_sum(3, '', serial, size, detail, '')
       FROM old_quarantine;
INSERT INTO hosts SELECT host, revision, memtide_sum(4, host, revision, 0, '', '') FROM old_hosts;
INSERT INTO idempotency SELECT n, key, body_hash, answer, memtide_sum(5, key, 0, 0, answer, body_hash)
       FROM old_idempotency ORDER BY n;
DROP TABLE old_compositions;
DROP TABLE old_events;
DROP TABLE old_quarantine;
DROP TABLE old_hosts;
DROP TABLE old_idempotency;
)";

Result<> in_transaction(Database& database, const auto& work) {
    if (Result<> ok = database.execute("BEGIN IMMEDIATE"); !ok) return ok;
    Result<> ok = work();
    if (ok) ok = database.execute("COMMIT");
    if (!ok) (void)database.execute("ROLLBACK");
    return ok;
}

// row_sum() for SQL: memtide_sum(table, key, number, second, body, hash).
void sum_for_sql(sqlite3_context* context, int, sqlite3_value** values) {
    const auto text = [&](int i) {
        const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(values[i]));
        const auto size = static_cast<std::size_t>(sqlite3_value_bytes(values[i]));
        return data == nullptr ? std::string_view() : std::string_view(data, size);
    };
    const auto number = [&](int i) { return static_cast<std::uint64_t>(sqlite3_value_int64(values[i])); };
    sqlite3_result_int64(
        context, row_sum(static_cast<RowTable>(number(0)), text(1), number(2), number(3), text(4), text(5)));
}

Result<> add_sum_function(Database& database) {
    constexpr int kArguments = 6;
    if (sqlite3_create_function(database.handle(), "memtide_sum", kArguments,
                                SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, &sum_for_sql, nullptr,
                                nullptr) != SQLITE_OK)
        return std::unexpected(database.error("add a function"));
    return {};
}

Result<> create_tables(Database& database) {
    if (Result<> ok = database.execute(kTables); !ok) return ok;
    if (Result<> ok = set_history_position(database, {}); !ok) return ok;
    return database.execute(
        fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId, kSchemaVersion));
}

Result<> migrate(Database& database, std::int64_t version) {
    if (version < 2)
        if (Result<> ok = database.execute(kTo2); !ok) return ok;
    if (version < 3) {
        if (Result<> ok = database.execute(kTo3); !ok) return ok;
        if (Result<> ok = database.execute(kTables); !ok) return ok;
        if (Result<> ok = add_sum_function(database); !ok) return ok;
        if (Result<> ok = database.execute(kCopyTo3); !ok) return ok;
        if (Result<> ok = set_history_position(database, {}); !ok) return ok;
    }
    return database.execute(fmt::format("PRAGMA user_version={}", kSchemaVersion));
}

std::unexpected<Error> damaged(const Database& database, std::string_view what) {
    return fail(ErrorCode::kProtocol, fmt::format("state file {} is damaged: {}", database.path(), what));
}

Result<> check_structure(Database& database) {
    // Table by table, so that each is read once: integrity_check also compares indices with their tables,
    // which matters where they are how rows are found.
    for (const char* check :
         {"PRAGMA integrity_check('compositions')", "PRAGMA integrity_check('idempotency')",
          "PRAGMA quick_check('events')", "PRAGMA quick_check('hosts')", "PRAGMA quick_check('quarantine')",
          "PRAGMA quick_check('meta')"}) {
        const Result<std::string> said = database.query_text(check);
        if (!said) return std::unexpected(said.error());
        if (*said != "ok") return damaged(database, *said);
    }
    return {};
}

// How the columns of a table go into row_sum().
struct SummedTable {
    RowTable table;
    const char* name;
    const char* columns;  // what names the row for people, key, number, second, body, hash, sum
};
constexpr std::array<SummedTable, 6> kSummed{{
    {RowTable::kCompositions, "compositions", "id, id, sequence, revision, body, ''"},
    {RowTable::kEvents, "events", "id, '', id, 0, body, ''"},
    {RowTable::kQuarantine, "quarantine", "serial, '', serial, size, detail, ''"},
    {RowTable::kHosts, "hosts", "host, host, revision, 0, '', ''"},
    {RowTable::kIdempotency, "idempotency", "key, key, 0, 0, answer, body_hash"},
    {RowTable::kMeta, "meta", "name, name, value, 0, '', ''"},
}};

Result<> check_rows(Database& database, const SummedTable& one) {
    const std::string sql = fmt::format("SELECT {}, sum FROM {}", one.columns, one.name);
    return each_row(database, sql, [&](const Statement& row) -> Result<> {
        const std::int64_t sum = row_sum(one.table, row.view(1), static_cast<std::uint64_t>(row.number(2)),
                                         static_cast<std::uint64_t>(row.number(3)), row.view(4), row.view(5));
        if (sum == row.number(6)) return {};
        return damaged(database, fmt::format("table {}, row {}: its checksum does not fit its contents",
                                             one.name, row.text(0)));
    });
}

Result<std::uint64_t> meta_number(Database& database, const std::string& name) {
    std::optional<std::uint64_t> found;
    const Result<> read = each_row(database, fmt::format("SELECT value, sum FROM meta WHERE name='{}'", name),
                                   [&](const Statement& row) -> Result<> {
                                       const auto value = static_cast<std::uint64_t>(row.number(0));
                                       if (row.number(1) == row_sum(RowTable::kMeta, name, value, 0, {}))
                                           found = value;
                                       return {};
                                   });
    if (!read) return std::unexpected(read.error());
    if (!found) return damaged(database, fmt::format("table meta, row {} is missing or damaged", name));
    return *found;
}

Result<> set_meta(Database& database, const char* name, std::uint64_t value) {
    Statement put(database, "INSERT OR REPLACE INTO meta(name, value, sum) VALUES(?,?,?)");
    return put.bind(name).bind(value).bind(row_sum(RowTable::kMeta, name, value, 0, {})).run();
}

}  // namespace

Result<> prepare_schema(Database& database) {
    const Result<std::int64_t> tables = database.query_number("SELECT count(*) FROM sqlite_master");
    if (!tables) return std::unexpected(tables.error());
    if (*tables == 0) return in_transaction(database, [&] { return create_tables(database); });
    const Result<std::int64_t> application = database.query_number("PRAGMA application_id");
    if (!application) return std::unexpected(application.error());
    if (*application != kApplicationId)
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} is a database of another program; name another state file", database.path()));
    const Result<std::int64_t> version = database.query_number("PRAGMA user_version");
    if (!version) return std::unexpected(version.error());
    if (*version == kSchemaVersion) return {};
    if (*version < 1 || *version > kSchemaVersion)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("state file {} has schema version {}, this manager knows 1 to {}; start the "
                                "manager version that wrote it, or name another state file",
                                database.path(), *version, kSchemaVersion));
    Result<> migrated = in_transaction(database, [&] { return migrate(database, *version); });
    if (!migrated)
        return std::unexpected(
            std::move(migrated.error())
                .with_context(fmt::format("migrate from schema version {} to {}", *version, kSchemaVersion)));
    return {};
}

Result<HistoryPosition> history_position(Database& database) {
    const Result<std::uint64_t> generation = meta_number(database, "generation");
    if (!generation) return std::unexpected(generation.error());
    const Result<std::uint64_t> entry = meta_number(database, "entry");
    if (!entry) return std::unexpected(entry.error());
    return HistoryPosition{*generation, *entry};
}

Result<> set_history_position(Database& database, HistoryPosition position) {
    if (Result<> ok = set_meta(database, "generation", position.generation); !ok) return ok;
    return set_meta(database, "entry", position.entry);
}

// Both take long where there is much, and both only read: side by side, on a connection each.
Result<> check_database(Database& database) {
    auto structure = std::async(std::launch::async, [path = database.path()]() -> Result<> {
        const Result<std::unique_ptr<Database>> other = Database::open(path, Database::Create::kNever);
        return other ? check_structure(**other) : std::unexpected(other.error());
    });
    Result<> rows;
    for (const SummedTable& one : kSummed)
        if (rows) rows = check_rows(database, one);
    Result<> sound = structure.get();
    return sound ? rows : sound;
}

}  // namespace memtide::fm
