#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "fabric-manager/store/database.h"
#include "fabric-manager/store/record.h"
#include "fabric-manager/store/store.h"

namespace memtide::fm {

namespace {

constexpr std::int64_t kSchemaVersion = 2;
constexpr std::int64_t kApplicationId = 0x4d454d54;  // "MEMT" in the file's header
constexpr std::size_t kMaxGroup = 512;               // mutations in one transaction
constexpr std::size_t kPageSize = 4096;

constexpr const char* kSchema = R"(
CREATE TABLE compositions(id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, host TEXT NOT NULL,
                          state TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE events(id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE quarantine(serial INTEGER PRIMARY KEY, size INTEGER NOT NULL, detail TEXT NOT NULL) STRICT;
CREATE TABLE hosts(host TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT;
CREATE TABLE idempotency(n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, body_hash TEXT NOT NULL,
                         answer TEXT NOT NULL) STRICT;
)";

struct Statements {
    explicit Statements(Database& db)
        : insert(db,
                 "INSERT INTO compositions(id, sequence, host, state, revision, body) VALUES(?,?,?,?,?,?)"),
          update(db, "UPDATE compositions SET state=?, revision=?, body=? WHERE id=? AND revision=?"),
          forget(db, "DELETE FROM compositions WHERE id=?"),
          event(db, "INSERT INTO events(id, body) VALUES(?,?)"),
          forget_events(db, "DELETE FROM events WHERE id<=?"),
          events(db, "SELECT body FROM events WHERE id>? ORDER BY id LIMIT ?"),
          history(db,
                  "SELECT body FROM events WHERE json_extract(body,'$.composition')=? AND id>? ORDER BY id "
                  "LIMIT ?"),
          quarantine(db, "INSERT OR REPLACE INTO quarantine(serial, size, detail) VALUES(?,?,?)"),
          lift(db, "DELETE FROM quarantine WHERE serial=?"),
          host(db, "INSERT OR REPLACE INTO hosts(host, revision) VALUES(?,?)"),
          key(db, "INSERT INTO idempotency(key, body_hash, answer) VALUES(?,?,?)"),
          forget_key(db, "DELETE FROM idempotency WHERE key=?") {}

    Statement insert, update, forget, event, forget_events, events, history, quarantine, lift, host, key,
        forget_key;
};

class SqliteStore final : public Store {
  public:
    explicit SqliteStore(std::unique_ptr<Database> database)
        : database_(std::move(database)), statements_(*database_), thread_([this] { run(); }) {}

    ~SqliteStore() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

    Result<StoreContents> load() override;
    void apply(Mutation mutation, std::function<void(Result<>)> done) override {
        push(Write{std::move(mutation), std::move(done), {}});
    }
    void read_events(EventQuery query, std::function<void(Result<std::vector<Event>>)> done) override {
        push(Read{std::move(query), std::move(done)});
    }
    void watch(std::function<void(const Mutation&)> changed) override { changed_ = std::move(changed); }

  private:
    struct Write {
        Mutation mutation;
        std::function<void(Result<>)> done;
        Result<> result;
    };
    struct Read {
        EventQuery query;
        std::function<void(Result<std::vector<Event>>)> done;
    };
    using Task = std::variant<Write, Read>;

    void push(Task task) {
        {
            const std::lock_guard lock(mutex_);
            queue_.push_back(std::move(task));
        }
        wake_.notify_one();
    }
    void run();
    void run_group(std::vector<Task>& group);
    void commit(std::vector<Task>& group);
    Result<> write_alone(const Mutation& mutation);
    Result<> write(const Mutation& mutation);
    Result<> write_composition(const CompositionChange& change);
    Result<> write_rest(const Mutation& mutation);
    Result<std::vector<Event>> select_events(const Read& read);

    std::unique_ptr<Database> database_;
    Statements statements_;
    std::function<void(const Mutation&)> changed_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Task> queue_;
    bool stopping_ = false;
    std::mutex use_;  // of the database: load() runs on the caller's thread
    std::thread thread_;
};

void SqliteStore::run() {
    for (;;) {
        std::vector<Task> group;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
            if (queue_.empty()) return;
            while (!queue_.empty() && group.size() < kMaxGroup) {
                group.push_back(std::move(queue_.front()));
                queue_.pop_front();
            }
        }
        const std::lock_guard lock(use_);
        run_group(group);
    }
}

void SqliteStore::run_group(std::vector<Task>& group) {
    bool writes = false;
    for (const Task& task : group) writes = writes || std::holds_alternative<Write>(task);
    if (writes) commit(group);
    for (Task& task : group) {
        if (auto* write = std::get_if<Write>(&task)) {
            if (write->result && changed_) changed_(write->mutation);
            write->done(std::move(write->result));
        } else {
            auto& read = std::get<Read>(task);
            read.done(select_events(read));
        }
    }
}

void SqliteStore::commit(std::vector<Task>& group) {
    Result<> whole = database_->execute("BEGIN IMMEDIATE");
    for (Task& task : group) {
        auto* write = std::get_if<Write>(&task);
        if (write == nullptr) continue;
        write->result = whole ? write_alone(write->mutation) : whole;
        // A full disk ends the whole transaction, not just the statement.
        if (whole && !write->result && !database_->in_transaction()) whole = write->result;
    }
    if (whole) whole = database_->execute("COMMIT");
    if (whole) return;
    // Also when BEGIN failed: then there is nothing to roll back, and that is fine.
    (void)database_->execute("ROLLBACK");
    for (Task& task : group)
        if (auto* write = std::get_if<Write>(&task)) write->result = whole;
}

// In a savepoint of its own, so that one refused mutation does not take the others of its group with it.
Result<> SqliteStore::write_alone(const Mutation& mutation) {
    if (Result<> ok = database_->execute("SAVEPOINT one"); !ok) return ok;
    Result<> result = write(mutation);
    if (!result) (void)database_->execute("ROLLBACK TO one");
    const Result<> released = database_->execute("RELEASE one");
    return result ? released : result;
}

Result<> SqliteStore::write(const Mutation& mutation) {
    for (const CompositionChange& change : mutation.compositions)
        if (Result<> ok = write_composition(change); !ok) return ok;
    for (const Event& event : mutation.events) {
        const std::string body = encode_record(event);
        if (Result<> ok = statements_.event.bind(event.id).bind(body).run(); !ok) return ok;
    }
    return write_rest(mutation);
}

Result<> SqliteStore::write_composition(const CompositionChange& change) {
    const Composition& c = change.composition;
    if (change.forget) return statements_.forget.bind(c.id.value).run();
    const std::string body = encode_record(c);
    if (c.revision == 1)
        return statements_.insert.bind(c.id.value)
            .bind(c.sequence)
            .bind(c.host.value)
            .bind(to_string(c.state))
            .bind(c.revision)
            .bind(body)
            .run();
    Result<> ok = statements_.update.bind(to_string(c.state))
                      .bind(c.revision)
                      .bind(body)
                      .bind(c.id.value)
                      .bind(c.revision - 1)
                      .run();
    if (ok && database_->changes() != 1)
        return fail(ErrorCode::kConflict,
                    fmt::format("composition {} is not at revision {} any more", c.id.value, c.revision - 1));
    return ok;
}

Result<> SqliteStore::write_rest(const Mutation& mutation) {
    for (const QuarantineRecord& ld : mutation.quarantine) {
        Result<> ok =
            ld.lifted
                ? statements_.lift.bind(ld.serial.value).run()
                : statements_.quarantine.bind(ld.serial.value).bind(ld.size.value).bind(ld.detail).run();
        if (!ok) return ok;
    }
    for (const HostRecord& host : mutation.hosts)
        if (Result<> ok = statements_.host.bind(host.host.value).bind(host.revision).run(); !ok) return ok;
    if (const auto& key = mutation.idempotency) {
        const std::string answer = encode_record(key->answer);
        if (Result<> ok = statements_.key.bind(key->key).bind(key->body_hash).bind(answer).run(); !ok)
            return ok;
    }
    for (const std::string& key : mutation.forget_idempotency)
        if (Result<> ok = statements_.forget_key.bind(key).run(); !ok) return ok;
    if (mutation.forget_events_up_to)
        return statements_.forget_events.bind(*mutation.forget_events_up_to).run();
    return {};
}

Result<std::vector<Event>> SqliteStore::select_events(const Read& read) {
    std::vector<Event> events;
    const EventQuery& query = read.query;
    Statement& select = query.composition ? statements_.history : statements_.events;
    if (query.composition) select.bind(query.composition->value);
    select.bind(query.after).bind(static_cast<std::uint64_t>(query.limit));
    Result<bool> row = select.step();
    for (; row && *row; row = select.step()) {
        Result<Event> event = decode_event(select.text(0));
        if (!event) {
            select.reset();
            return std::unexpected(event.error());
        }
        events.push_back(*std::move(event));
    }
    select.reset();
    if (!row) return std::unexpected(row.error());
    return events;
}

// --- Loading ---

// Calls read(statement) for each row.
template <typename Read>
Result<> each_row(Database& database, std::string_view sql, Read read) {
    Statement statement(database, sql);
    for (;;) {
        const Result<bool> row = statement.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) return {};
        if (Result<> ok = read(statement); !ok) return ok;
    }
}

Result<StoreContents> SqliteStore::load() {
    const std::lock_guard lock(use_);
    StoreContents contents;
    Result<> ok =
        each_row(*database_, "SELECT body FROM compositions ORDER BY sequence", [&](Statement& row) {
            Result<Composition> one = decode_composition(row.text(0));
            if (!one) return Result<>(std::unexpected(one.error()));
            contents.compositions.push_back(*std::move(one));
            return Result<>();
        });
    if (!ok) return std::unexpected(ok.error());
    ok = each_row(*database_, "SELECT serial, size, detail FROM quarantine", [&](Statement& row) {
        contents.quarantine.push_back({SerialNumber{static_cast<std::uint64_t>(row.number(0))},
                                       Bytes{static_cast<std::uint64_t>(row.number(1))}, row.text(2)});
        return Result<>();
    });
    if (!ok) return std::unexpected(ok.error());
    ok = each_row(*database_, "SELECT host, revision FROM hosts", [&](Statement& row) {
        contents.hosts.push_back({HostId(row.text(0)), static_cast<std::uint64_t>(row.number(1))});
        return Result<>();
    });
    if (!ok) return std::unexpected(ok.error());
    ok = each_row(*database_, "SELECT key, body_hash, answer FROM idempotency ORDER BY n",
                  [&](Statement& row) {
                      Result<Composition> answer = decode_composition(row.text(2));
                      if (!answer) return Result<>(std::unexpected(answer.error()));
                      contents.idempotency.push_back({row.text(0), row.text(1), *std::move(answer)});
                      return Result<>();
                  });
    if (!ok) return std::unexpected(ok.error());
    ok = each_row(*database_, "SELECT coalesce(min(id),0), coalesce(max(id),0) FROM events",
                  [&](Statement& row) {
                      contents.first_event = static_cast<std::uint64_t>(row.number(0));
                      contents.last_event = static_cast<std::uint64_t>(row.number(1));
                      return Result<>();
                  });
    if (!ok) return std::unexpected(ok.error());
    return contents;
}

// --- Opening ---

// What only makes reading faster is no part of the schema: every version may add it, and drop it.
constexpr const char* kIndexes =
    "CREATE INDEX IF NOT EXISTS events_of_composition ON events(json_extract(body,'$.composition')) "
    "WHERE json_extract(body,'$.composition') IS NOT NULL";

Result<> create_schema(Database& database) {
    if (Result<> ok = database.execute("BEGIN IMMEDIATE"); !ok) return ok;
    if (Result<> ok = database.execute(kSchema); !ok) return ok;
    if (Result<> ok = database.execute(
            fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId, kSchemaVersion));
        !ok)
        return ok;
    return database.execute("COMMIT");
}

Result<> check_schema(Database& database, const std::string& path) {
    const Result<std::int64_t> tables = database.query_number("SELECT count(*) FROM sqlite_master");
    if (!tables) return std::unexpected(tables.error());
    if (*tables == 0) return create_schema(database);
    const Result<std::int64_t> application = database.query_number("PRAGMA application_id");
    if (!application) return std::unexpected(application.error());
    if (*application != kApplicationId)
        return fail(ErrorCode::kProtocol,
                    fmt::format("{} is a database of another program; name another state file", path));
    const Result<std::int64_t> version = database.query_number("PRAGMA user_version");
    if (!version) return std::unexpected(version.error());
    if (*version != kSchemaVersion)
        return fail(
            ErrorCode::kProtocol,
            fmt::format("state file {} has schema version {}, this manager knows {}; start the manager "
                        "version that wrote it, or name another state file",
                        path, *version, kSchemaVersion));
    const Result<std::string> check = database.query_text("PRAGMA quick_check(1)");
    if (!check) return std::unexpected(check.error());
    if (*check != "ok")
        return fail(
            ErrorCode::kProtocol,
            fmt::format("state file {} is damaged ({}): restore it from a copy, or move it away to start "
                        "anew; bindings found on the switches are adopted then",
                        path, *check));
    return {};
}

Result<> prepare(Database& database, const SqliteOptions& options) {
    // EXCLUSIVE before WAL: one manager owns the file, and no shared memory is needed beside it.
    for (const char* pragma :
         {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL",
          "PRAGMA temp_store=MEMORY", "PRAGMA wal_autocheckpoint=2000"})
        if (Result<> ok = database.execute(pragma); !ok) return ok;
    // Takes the lock now instead of at the first write.
    if (Result<> ok = database.execute("BEGIN EXCLUSIVE; COMMIT"); !ok) return ok;
    if (Result<> ok = check_schema(database, options.path); !ok) return ok;
    if (Result<> ok = database.execute(kIndexes); !ok) return ok;
    if (options.limit)
        return database.execute(fmt::format("PRAGMA max_page_count={}", options.limit->value / kPageSize));
    return {};
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options) {
    Result<std::unique_ptr<Database>> database = Database::open(options.path);
    if (!database) return std::unexpected(database.error());
    if (Result<> ok = prepare(**database, options); !ok) return std::unexpected(ok.error());
    return std::make_unique<SqliteStore>(*std::move(database));
}

}  // namespace memtide::fm
