#include "fabric-manager/store/rows.h"

#include <algorithm>
#include <deque>
#include <future>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/store/record.h"

namespace memtide::fm {

RowWriter::RowWriter(Database& db)
    : database_(db),
      insert_(db, "INSERT INTO compositions(id, sequence, revision, body, sum) VALUES(?,?,?,?,?)"),
      update_(db, "UPDATE compositions SET revision=?, body=?, sum=? WHERE id=? AND revision=?"),
      forget_(db, "DELETE FROM compositions WHERE id=?"),
      event_(db, "INSERT INTO events(id, body, sum) VALUES(?,?,?)"),
      forget_events_(db, "DELETE FROM events WHERE id<=?"),
      quarantine_(db, "INSERT OR REPLACE INTO quarantine(serial, size, detail, sum) VALUES(?,?,?,?)"),
      lift_(db, "DELETE FROM quarantine WHERE serial=?"),
      host_(db,
            "INSERT INTO hosts(host, revision, sum) VALUES(?,?,?) "
            "ON CONFLICT(host) DO UPDATE SET revision=excluded.revision, sum=excluded.sum"),
      key_(db, "INSERT INTO idempotency(key, body_hash, answer, sum) VALUES(?,?,?,?)"),
      forget_key_(db, "DELETE FROM idempotency WHERE key=?"),
      entry_(db, "UPDATE meta SET value=?, sum=? WHERE name='entry'") {}

Result<> RowWriter::apply(const std::vector<RowChange>& changes) {
    for (const RowChange& one : changes)
        if (Result<> ok = apply(one); !ok) return ok;
    return {};
}

Result<> RowWriter::apply(const RowChange& c) {
    switch (c.kind) {
        case RowChange::Kind::kInsertComposition:
            return insert_.bind(c.key)
                .bind(c.number)
                .bind(c.second)
                .bind(c.body)
                .bind(row_sum(RowTable::kCompositions, c.key, c.number, c.second, c.body))
                .run();
        case RowChange::Kind::kUpdateComposition:
            return update(c);
        case RowChange::Kind::kForgetComposition:
            return forget_.bind(c.key).run();
        case RowChange::Kind::kAddEvent:
            return event_.bind(c.number)
                .bind(c.body)
                .bind(row_sum(RowTable::kEvents, {}, c.number, 0, c.body))
                .run();
        case RowChange::Kind::kForgetEvents:
            return forget_events_.bind(c.number).run();
        case RowChange::Kind::kQuarantine:
            return quarantine_.bind(c.number)
                .bind(c.second)
                .bind(c.body)
                .bind(row_sum(RowTable::kQuarantine, {}, c.number, c.second, c.body))
                .run();
        case RowChange::Kind::kLiftQuarantine:
            return lift_.bind(c.number).run();
        case RowChange::Kind::kHost:
            return host_.bind(c.key)
                .bind(c.number)
                .bind(row_sum(RowTable::kHosts, c.key, c.number, 0, {}))
                .run();
        case RowChange::Kind::kAddKey:
            return key_.bind(c.key)
                .bind(c.hash)
                .bind(c.body)
                .bind(row_sum(RowTable::kIdempotency, c.key, 0, 0, c.body, c.hash))
                .run();
        case RowChange::Kind::kForgetKey:
            return forget_key_.bind(c.key).run();
    }
    return fail(ErrorCode::kInternal, fmt::format("no row change {}", static_cast<int>(c.kind)));
}

Result<> RowWriter::update(const RowChange& c) {
    Result<> ok = update_.bind(c.second)
                      .bind(c.body)
                      .bind(row_sum(RowTable::kCompositions, c.key, c.number, c.second, c.body))
                      .bind(c.key)
                      .bind(c.second - 1)
                      .run();
    if (ok && database_.changes() != 1)
        return fail(ErrorCode::kConflict,
                    fmt::format("composition {} is not at revision {} any more", c.key, c.second - 1));
    return ok;
}

Result<> RowWriter::set_entry(std::uint64_t entry) {
    return entry_.bind(entry).bind(row_sum(RowTable::kMeta, "entry", entry, 0, {})).run();
}

// --- Reading ---

namespace {

std::unexpected<Error> unreadable(const Database& database, std::string_view table, std::string_view row,
                                  Error error) {
    return std::unexpected(std::move(error).with_context(
        fmt::format("state file {}, table {}, row {}", database.path(), table, row)));
}

// Decodes rows on other threads while more of them are read, and keeps their order.
class Decoding {
  public:
    Decoding(const Database& database, std::vector<Composition>& out) : database_(database), out_(out) {}

    Result<> add(std::string_view id, std::string_view body) {
        chunk_.push_back({std::string(id), std::string(body)});
        return chunk_.size() < kChunk ? Result<>() : send();
    }
    Result<> finish() {
        Result<> ok = send();
        while (ok && !under_way_.empty()) ok = take();
        return ok;
    }

  private:
    static constexpr std::size_t kChunk = 1024;
    static constexpr std::size_t kMostUnderWay = 4;  // bounds the memory that the texts take
    struct Row {
        std::string id;
        std::string body;
    };

    Result<> send() {
        under_way_.push_back(std::async(std::launch::async,
                                        [this, rows = std::exchange(chunk_, {})] { return decode(rows); }));
        return under_way_.size() < kMostUnderWay ? Result<>() : take();
    }
    Result<> take() {
        Result<std::vector<Composition>> decoded = under_way_.front().get();
        under_way_.pop_front();
        if (!decoded) return std::unexpected(decoded.error());
        std::ranges::move(*decoded, std::back_inserter(out_));
        return {};
    }
    [[nodiscard]] Result<std::vector<Composition>> decode(const std::vector<Row>& rows) const {
        std::vector<Composition> decoded;
        decoded.reserve(rows.size());
        for (const Row& row : rows) {
            Result<Composition> one = decode_composition(row.body);
            if (!one) return unreadable(database_, "compositions", row.id, one.error());
            decoded.push_back(*std::move(one));
        }
        return decoded;
    }

    const Database& database_;
    std::vector<Composition>& out_;
    std::vector<Row> chunk_;
    std::deque<std::future<Result<std::vector<Composition>>>> under_way_;
};

Result<> read_compositions(Database& database, StoreContents& contents) {
    Decoding decoding(database, contents.compositions);
    Result<> ok = each_row(database, "SELECT body, id FROM compositions ORDER BY sequence",
                           [&](const Statement& row) { return decoding.add(row.view(1), row.view(0)); });
    return ok ? decoding.finish() : ok;
}

Result<> read_keys(Database& database, StoreContents& contents) {
    return each_row(database, "SELECT key, body_hash, answer FROM idempotency ORDER BY n",
                    [&](const Statement& row) -> Result<> {
                        Result<Composition> answer = decode_composition(row.view(2));
                        if (!answer) return unreadable(database, "idempotency", row.view(0), answer.error());
                        contents.idempotency.push_back({row.text(0), row.text(1), *std::move(answer)});
                        return {};
                    });
}

Result<> read_small_tables(Database& database, StoreContents& contents) {
    Result<> ok = each_row(
        database, "SELECT serial, size, detail FROM quarantine", [&](const Statement& row) -> Result<> {
            contents.quarantine.push_back({SerialNumber{static_cast<std::uint64_t>(row.number(0))},
                                           Bytes{static_cast<std::uint64_t>(row.number(1))}, row.text(2)});
            return {};
        });
    if (!ok) return ok;
    ok = each_row(database, "SELECT host, revision FROM hosts", [&](const Statement& row) -> Result<> {
        contents.hosts.push_back({HostId(row.text(0)), static_cast<std::uint64_t>(row.number(1))});
        return {};
    });
    if (!ok) return ok;
    return each_row(database, "SELECT coalesce(min(id),0), coalesce(max(id),0) FROM events",
                    [&](const Statement& row) -> Result<> {
                        contents.first_event = static_cast<std::uint64_t>(row.number(0));
                        contents.last_event = static_cast<std::uint64_t>(row.number(1));
                        return {};
                    });
}

}  // namespace

Result<StoreContents> read_contents(Database& database) {
    StoreContents contents;
    if (Result<> ok = read_compositions(database, contents); !ok) return std::unexpected(ok.error());
    if (Result<> ok = read_keys(database, contents); !ok) return std::unexpected(ok.error());
    if (Result<> ok = read_small_tables(database, contents); !ok) return std::unexpected(ok.error());
    return contents;
}

}  // namespace memtide::fm
