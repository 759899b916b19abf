// Group commit: one thread turns whatever mutations have queued up into one write of the log. The database
// follows in a transaction of its own pace.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/store/database.h"
#include "fabric-manager/store/entry_log.h"
#include "fabric-manager/store/open_transaction.h"
#include "fabric-manager/store/opening.h"
#include "fabric-manager/store/record.h"
#include "fabric-manager/store/rows.h"
#include "fabric-manager/store/schema.h"
#include "fabric-manager/store/snapshot.h"
#include "fabric-manager/store/store.h"

namespace memtide::fm {

namespace {

constexpr std::size_t kMaxGroup = 512;         // mutations in one write of the log
constexpr std::size_t kMaxUncommitted = 4096;  // entries that the database lags behind
constexpr std::chrono::seconds kHealPause{1};
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
        : options_(std::move(options)),
          paths_(options_.path),
          lock_(std::move(state.lock)),
          connection_(std::in_place, std::move(state.database)),
          log_(std::move(state.log)) {
        note_identity();
        if (const Result<> ok = connection_->database->execute(kIndexes); !ok)
            log::warning("histories are read without an index", {{"error", ok.error()}});
        if (log_) {
            (void)connection_->database->execute("PRAGMA synchronous=NORMAL");  // the log is what is durable
            snapshots_ = std::make_unique<SnapshotTaker>(paths_.database, paths_.snapshot());
            if (!state.has_snapshot) snapshots_->request();
            if (!state.damage.empty()) snapshots_->note_damage(state.damage);
        }
        thread_ = std::thread([this] { run(); });
    }

    ~SqliteStore() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_one();
        thread_.join();
        if (!log_ || !connection_) return;
        drop_old_log();
        if (const Result<> ok = settle(); !ok)
            log::warning("the next start brings the state file up from its log", {{"error", ok.error()}});
    }

    Result<StoreContents> load() override {
        const std::lock_guard lock(use_);
        if (log_)
            if (Result<> ok = transaction_.open(*connection_); !ok) return std::unexpected(ok.error());
        if (snapshots_ && !std::exchange(checks_snapshot_, true))
            snapshots_->check(options_.check_snapshot_after);
        return read_contents(*connection_->database);
    }
    void apply(Mutation mutation, std::function<void(Result<>)> done) override {
        push(Write{std::move(mutation), {}, std::move(done), {}});
    }
    void read_events(EventQuery query, std::function<void(Result<std::vector<Event>>)> done) override {
        push(Read{std::move(query), std::move(done)});
    }
    void watch(std::function<void(const Mutation&)> changed) override { changed_ = std::move(changed); }
    void watch_damage(std::function<void(const std::string& damage)> changed) override {
        if (snapshots_) snapshots_->watch_damage(std::move(changed));
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

    // --- What may be wrong with the files ---
    void note_identity() { identity_ = identity_of(paths_.database); }
    Result<> check_files();
    Result<> heal();
    void keep_snapshots();
    void drop_old_log();
    Result<> pass(std::string_view point, std::string_view action) const;

    SqliteOptions options_;
    StatePaths paths_;
    std::optional<StateLock> lock_;              // given up after the connections
    std::optional<StateConnection> connection_;  // nothing while it is being opened anew
    OpenTransaction transaction_;
    std::optional<EntryLog> log_;  // nothing for ":memory:"
    std::optional<FileIdentity> identity_;
    std::unique_ptr<SnapshotTaker> snapshots_;
    bool checks_snapshot_ = false;
    std::chrono::steady_clock::time_point healed_{};  // last tried
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
    if (snapshots_) keep_snapshots();
}

void SqliteStore::commit(const std::vector<Write*>& group) {
    Result<> whole = check_files();
    if (whole) {
        for (Write* write : group) write->changes = row_changes(write->mutation);
        whole = try_to_commit(group);
        if (!whole) transaction_.roll_back(*connection_);
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
    if (Result<> ok = transaction_.open(*connection_); !ok) return ok;
    if (const Result<> together = execute_together(group); !together) {
        // Rare: a revision that does not match. One after the other, so that it takes no others with it.
        transaction_.roll_back(*connection_);
        if (Result<> ok = transaction_.open(*connection_); !ok) return ok;
        if (Result<> ok = execute_apart(group); !ok) return ok;
    }
    return log_ ? make_durable(group) : connection_->commit.run();
}

Result<> SqliteStore::execute_together(const std::vector<Write*>& group) {
    for (Write* write : group)
        if (Result<> ok = connection_->rows.apply(write->changes); !ok) return ok;
    return {};
}

Result<> SqliteStore::execute_apart(const std::vector<Write*>& group) {
    for (Write* write : group) {
        write->result = execute_alone(*write);
        // A full disk ends the whole transaction, not just the statement.
        if (!write->result && !connection_->database->in_transaction()) return write->result;
    }
    return {};
}

Result<> SqliteStore::execute_alone(Write& write) {
    Database& database = *connection_->database;
    if (Result<> ok = database.execute("SAVEPOINT one"); !ok) return ok;
    Result<> result = connection_->rows.apply(write.changes);
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
    std::uint64_t entry = log_->position().last;
    if (Result<> ok = log_->append(payloads); !ok) return ok;
    for (Write* write : group)
        if (write->result) transaction_.keep(++entry, std::move(write->changes));
    return {};
}

// --- The database follows the log ---

std::optional<OpenTransaction::Clock::time_point> SqliteStore::due() const {
    if (!log_ || !connection_ || transaction_.entries() == 0) return std::nullopt;
    return std::max(transaction_.since() + options_.commit_after, commit_not_before_);
}

void SqliteStore::settle_when_due() {
    const auto time = due();
    if (!time) return;
    if (transaction_.entries() < kMaxUncommitted && OpenTransaction::Clock::now() < *time) return;
    const Result<> ok = settle();
    if (ok) return;
    commit_not_before_ = OpenTransaction::Clock::now() + kHealPause;
    log::error("the state file cannot be brought up to its log: no changes are accepted",
               {{"state", paths_.database}, {"error", ok.error()}});
}

Result<> SqliteStore::settle() {
    behind_ = true;
    if (Result<> ok = pass("commit", "commit to"); !ok) return ok;
    if (Result<> ok = transaction_.commit(*connection_); !ok) return ok;
    behind_ = false;
    return pass("committed", "commit to");
}

Result<> SqliteStore::pass(std::string_view point, std::string_view action) const {
    const int error_number = options_.fault ? options_.fault(point) : 0;
    if (error_number == 0) return {};
    return std::unexpected(file_error(action, paths_.database, error_number));
}

// --- Files that change under it ---

Result<> SqliteStore::check_files() {
    if (!log_) return {};
    if (log_->broken() || !connection_)
        if (Result<> ok = heal(); !ok) return ok;
    const auto is_there = [&](const std::string& path) {
        return fail(ErrorCode::kIo,
                    fmt::format("{} was renamed, deleted or replaced while the manager runs: put it back, or "
                                "restart the manager (it recovers from the snapshot and the log)",
                                path));
    };
    if (identity_of(paths_.database) != identity_) return is_there(paths_.database);
    if (!file_exists(log_->path())) return is_there(log_->path());
    return {};
}

// After a failed sync nobody knows what of the log and the database is on the disk. Both are begun anew: the
// database is opened and read again, and what it says goes on in a log of a new generation, in which the
// group that failed is not.
Result<> SqliteStore::heal() {
    const auto now = std::chrono::steady_clock::now();
    if (now - healed_ < kHealPause)
        return fail(ErrorCode::kIo,
                    fmt::format("state file {}: a sync of its log failed; it is opened anew in "
                                "a moment",
                                paths_.database));
    healed_ = now;
    const std::uint64_t last = log_->position().last;
    connection_.reset();
    Result<std::unique_ptr<Database>> database = open_connection(options_);
    if (!database) return std::unexpected(database.error());
    if (Result<> ok = check_database(**database); !ok) return ok;
    const Result<HistoryPosition> position = history_position(**database);
    if (!position) return std::unexpected(position.error());
    if (position->entry + transaction_.entries() != last)
        return fail(ErrorCode::kIo,
                    fmt::format("state file {} is at entry {} instead of {} after a failed sync: restart the "
                                "manager",
                                paths_.database, position->entry, last - transaction_.entries()));
    StateConnection connection(*std::move(database));
    if (Result<> ok = transaction_.commit(connection); !ok) return ok;
    const std::vector<std::string> old = paths_.logs();
    Result<EntryLog> log = begin_generation(*connection.database, paths_, last, options_.fault);
    if (!log) return std::unexpected(log.error());
    if (Result<> ok = connection.database->execute("PRAGMA synchronous=NORMAL"); !ok) return ok;
    connection_.emplace(std::move(connection));
    log_.emplace(*std::move(log));
    for (const std::string& one : old) {
        std::error_code absent;
        if (one != log_->path()) std::filesystem::remove(one, absent);
    }
    snapshots_->request();
    log::warning("state file opened anew after a failed sync",
                 {{"state", paths_.database}, {"entry", log_->position().last}});
    return {};
}

// What the newest snapshot has.
void SqliteStore::drop_old_log() {
    if (const std::optional<HistoryPosition> taken = snapshots_->take_news())
        if (taken->generation == log_->position().generation) log_->remove_up_to(taken->entry);
}

void SqliteStore::keep_snapshots() {
    drop_old_log();
    if (log_->broken() || log_->segment_bytes() < options_.snapshot_after.value) return;
    std::error_code absent;
    const std::uintmax_t size = std::filesystem::file_size(paths_.database, absent);
    if (!absent && log_->segment_bytes() < 2 * size) return;
    if (const Result<> ok = log_->rotate(); !ok) {
        log::warning("no new segment of the log", {{"error", ok.error()}});
        return;
    }
    snapshots_->request();
}

Result<std::vector<Event>> SqliteStore::select_events(const Read& read) {
    std::vector<Event> events;
    if (!connection_) return fail(ErrorCode::kIo, "the state file is being opened anew");
    // On a full disk the newest ones may have to wait for room.
    if (transaction_.entries() != 0) (void)transaction_.open(*connection_);
    const EventQuery& query = read.query;
    Statement& select = query.composition ? connection_->history : connection_->events;
    if (query.composition) select.bind(query.composition->value);
    select.bind(query.after).bind(static_cast<std::uint64_t>(query.limit));
    Result<bool> row = select.step();
    for (; row && *row; row = select.step()) {
        Result<Event> event = decode_event(select.view(0));
        if (!event) {
            Error error = std::move(event.error())
                              .with_context(fmt::format("state file {}, table events, row {}",
                                                        paths_.database, select.text(1)));
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
