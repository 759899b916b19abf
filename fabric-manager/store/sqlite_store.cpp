// Group commit: one thread turns whatever mutations have queued up into one write of the log. The database
// follows in a transaction of its own pace.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/store/live_state.h"
#include "fabric-manager/store/record.h"
#include "fabric-manager/store/rows.h"
#include "fabric-manager/store/schema.h"
#include "fabric-manager/store/store.h"

namespace memtide::fm {

namespace {

constexpr std::size_t kMaxGroup = 512;           // mutations in one write of the log
constexpr std::size_t kMaxUncommitted = 4096;    // entries that the database lags behind
constexpr std::chrono::seconds kCommitPause{1};  // of a commit that failed
// Where many write at a time, a moment's wait makes groups larger: a sync costs the processor as much as tens
// of entries.
constexpr std::size_t kCrowd = 8;
constexpr std::chrono::milliseconds kGather{2};

// What only makes reading faster is no part of the schema: every version may add it, and drop it.
constexpr const char* kIndexes =
    "CREATE INDEX IF NOT EXISTS events_of_composition ON events(json_extract(body,'$.composition')) "
    "WHERE json_extract(body,'$.composition') IS NOT NULL";

class SqliteStore final : public Store {
  public:
    SqliteStore(SqliteOptions options, OpenState state)
        : options_(std::move(options)), live_(options_, std::move(state)) {
        if (const Result<> ok = live_.connection->database->execute(kIndexes); !ok)
            log::warning("histories are read without an index", {{"error", ok.error()}});
        thread_ = std::thread([this] { run(); });
    }

    ~SqliteStore() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_one();
        thread_.join();
        if (!live_.entry_log || !live_.connection) return;
        live_.drop_old_log();
        if (const Result<> ok = settle(); !ok)
            log::warning("the next start brings the state file up from its log", {{"error", ok.error()}});
    }

    Result<StoreContents> load() override {
        const std::lock_guard lock(use_);
        if (live_.entry_log)
            if (Result<> ok = live_.transaction.open(*live_.connection); !ok)
                return std::unexpected(ok.error());
        if (live_.snapshots && !std::exchange(checks_snapshot_, true))
            live_.snapshots->check(options_.check_snapshot_after);
        return read_contents(*live_.connection->database);
    }
    void apply(Mutation mutation, std::function<void(Result<>)> done) override {
        push(Write{std::move(mutation), {}, std::move(done), {}});
    }
    void read_events(EventQuery query, std::function<void(Result<std::vector<Event>>)> done) override {
        push(Read{std::move(query), std::move(done)});
    }
    void watch(std::function<void(const Mutation&)> changed) override { changed_ = std::move(changed); }
    void watch_damage(std::function<void(const std::string& damage)> changed) override {
        if (live_.snapshots) live_.snapshots->watch_damage(std::move(changed));
    }

  private:
    struct Write {
        Mutation mutation;
        std::vector<RowChange> changes;
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
    void commit(const std::vector<Write*>& group);
    Result<> try_to_commit(const std::vector<Write*>& group);
    Result<> execute_together(const std::vector<Write*>& group);
    Result<> execute_apart(const std::vector<Write*>& group);
    Result<> execute_alone(Write& write);
    Result<> make_durable(const std::vector<Write*>& group);
    Result<> settle();
    void settle_when_due();
    std::optional<OpenTransaction::Clock::time_point> due() const;
    Result<std::vector<Event>> select_events(const Read& read);

    Result<> pass(std::string_view point, std::string_view action) const;

    SqliteOptions options_;
    LiveState live_;
    bool checks_snapshot_ = false;
    OpenTransaction::Clock::time_point commit_not_before_{};
    bool behind_ = false;  // the last commit failed
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
            const auto something = [this] { return stopping_ || !queue_.empty(); };
            if (const auto time = due())
                wake_.wait_until(lock, *time, something);
            else
                wake_.wait(lock, something);
            if (stopping_ && queue_.empty()) return;
            while (!queue_.empty() && group.size() < kMaxGroup) {
                group.push_back(std::move(queue_.front()));
                queue_.pop_front();
            }
        }
        {
            const std::lock_guard lock(use_);
            if (!group.empty()) run_group(group);
            settle_when_due();
        }
        if (group.size() >= kCrowd) std::this_thread::sleep_for(kGather);
    }
}

void SqliteStore::run_group(std::vector<Task>& group) {
    std::vector<Write*> writes;
    for (Task& task : group)
        if (auto* write = std::get_if<Write>(&task)) writes.push_back(write);
    if (!writes.empty()) commit(writes);
    for (Task& task : group) {
        if (auto* write = std::get_if<Write>(&task)) {
            if (write->result && changed_) changed_(write->mutation);
            write->done(std::move(write->result));
        } else {
            auto& read = std::get<Read>(task);
            read.done(select_events(read));
        }
    }
    if (live_.snapshots) live_.keep_snapshots();
}

void SqliteStore::commit(const std::vector<Write*>& group) {
    Result<> whole = live_.check_files();
    if (whole) {
        for (Write* write : group) write->changes = row_changes(write->mutation);
        whole = try_to_commit(group);
        if (!whole) live_.transaction.roll_back(*live_.connection);
    }
    if (whole) return;
    if (whole.error().code == ErrorCode::kProtocol)
        whole.error().message += "; restart the manager: it recovers from the snapshot and the log";
    for (Write* write : group) write->result = whole;
}

Result<> SqliteStore::try_to_commit(const std::vector<Write*>& group) {
    // What cannot reach the database must not pile up in the log.
    if (behind_)
        if (Result<> ok = settle(); !ok) return ok;
    if (Result<> ok = live_.transaction.open(*live_.connection); !ok) return ok;
    if (const Result<> together = execute_together(group); !together) {
        // Rare: a revision that does not match. One after the other, so that it takes no others with it.
        live_.transaction.roll_back(*live_.connection);
        if (Result<> ok = live_.transaction.open(*live_.connection); !ok) return ok;
        if (Result<> ok = execute_apart(group); !ok) return ok;
    }
    return live_.entry_log ? make_durable(group) : live_.connection->commit.run();
}

Result<> SqliteStore::execute_together(const std::vector<Write*>& group) {
    for (Write* write : group)
        if (Result<> ok = live_.connection->rows.apply(write->changes); !ok) return ok;
    return {};
}

Result<> SqliteStore::execute_apart(const std::vector<Write*>& group) {
    for (Write* write : group) {
        write->result = execute_alone(*write);
        // A full disk ends the whole transaction, not just the statement.
        if (!write->result && !live_.connection->database->in_transaction()) return write->result;
    }
    return {};
}

Result<> SqliteStore::execute_alone(Write& write) {
    Database& database = *live_.connection->database;
    if (Result<> ok = database.execute("SAVEPOINT one"); !ok) return ok;
    Result<> result = live_.connection->rows.apply(write.changes);
    if (!result) (void)database.execute("ROLLBACK TO one");
    const Result<> released = database.execute("RELEASE one");
    return result ? released : result;
}

// An entry in the log is acknowledged sooner or later, by us or by the next start.
Result<> SqliteStore::make_durable(const std::vector<Write*>& group) {
    std::vector<std::string> payloads;
    payloads.reserve(group.size());
    for (const Write* write : group)
        if (write->result) payloads.push_back(encode_changes(write->changes));
    if (payloads.empty()) return {};
    std::uint64_t entry = live_.entry_log->position().last;
    if (Result<> ok = live_.entry_log->append(payloads); !ok) return ok;
    for (Write* write : group)
        if (write->result) live_.transaction.keep(++entry, std::move(write->changes));
    return {};
}

// --- The database follows the log ---

std::optional<OpenTransaction::Clock::time_point> SqliteStore::due() const {
    if (!live_.entry_log || !live_.connection || live_.transaction.entries() == 0) return std::nullopt;
    return std::max(live_.transaction.since() + options_.commit_after, commit_not_before_);
}

void SqliteStore::settle_when_due() {
    const auto time = due();
    if (!time) return;
    if (live_.transaction.entries() < kMaxUncommitted && OpenTransaction::Clock::now() < *time) return;
    const Result<> ok = settle();
    if (ok) return;
    commit_not_before_ = OpenTransaction::Clock::now() + kCommitPause;
    log::error("the state file cannot be brought up to its log: no changes are accepted",
               {{"state", live_.paths.database}, {"error", ok.error()}});
}

Result<> SqliteStore::settle() {
    behind_ = true;
    if (Result<> ok = pass("commit", "commit to"); !ok) return ok;
    if (Result<> ok = live_.transaction.commit(*live_.connection); !ok) return ok;
    behind_ = false;
    return pass("committed", "commit to");
}

Result<> SqliteStore::pass(std::string_view point, std::string_view action) const {
    const int error_number = options_.fault ? options_.fault(point) : 0;
    if (error_number == 0) return {};
    return std::unexpected(file_error(action, live_.paths.database, error_number));
}

Result<std::vector<Event>> SqliteStore::select_events(const Read& read) {
    std::vector<Event> events;
    if (!live_.connection) return fail(ErrorCode::kIo, "the state file is being opened anew");
    // On a full disk the newest ones may have to wait for room.
    if (live_.transaction.entries() != 0) (void)live_.transaction.open(*live_.connection);
    const EventQuery& query = read.query;
    Statement& select = query.composition ? live_.connection->history : live_.connection->events;
    if (query.composition) select.bind(query.composition->value);
    select.bind(query.after).bind(static_cast<std::uint64_t>(query.limit));
    Result<bool> row = select.step();
    for (; row && *row; row = select.step()) {
        Result<Event> event = decode_event(select.view(0));
        if (!event) {
            Error error = std::move(event.error())
                              .with_context(fmt::format("state file {}, table events, row {}",
                                                        live_.paths.database, select.text(1)));
            select.reset();
            return std::unexpected(std::move(error));
        }
        events.push_back(*std::move(event));
    }
    select.reset();
    if (!row) return std::unexpected(row.error());
    return events;
}

// An event for those who follow, beside the line in the log.
Result<> tell(Store& store, const std::string& what) {
    log::warning("store.recovered", {{"detail", what}});
    const Result<StoreContents> contents = store.load();
    if (!contents) return std::unexpected(contents.error());
    Mutation mutation;
    Event event;
    event.id = contents->last_event + 1;
    event.time = std::chrono::system_clock::now();
    event.type = "store.recovered";
    event.detail = what;
    mutation.events.push_back(std::move(event));
    std::promise<Result<>> done;
    store.apply(std::move(mutation), [&](Result<> result) { done.set_value(std::move(result)); });
    return done.get_future().get();
}

Result<OpenState> open_memory(const SqliteOptions& options) {
    OpenState state;
    Result<std::unique_ptr<Database>> database = open_connection(options);
    if (!database) return std::unexpected(database.error());
    state.database = *std::move(database);
    if (Result<> ok = prepare_schema(*state.database); !ok) return std::unexpected(ok.error());
    return state;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options) {
    Result<OpenState> state = options.path == ":memory:" ? open_memory(options) : open_state(options);
    if (!state) return std::unexpected(state.error());
    const std::optional<std::string> recovered = std::exchange(state->recovered, std::nullopt);
    auto store = std::make_unique<SqliteStore>(options, *std::move(state));
    if (recovered)
        if (Result<> ok = tell(*store, *recovered); !ok) return std::unexpected(ok.error());
    return store;
}

}  // namespace memtide::fm
