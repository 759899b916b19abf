#include "fabric-manager/store/opening.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "fabric-manager/store/rows.h"
#include "fabric-manager/store/schema.h"

namespace memtide::fm {

namespace {

constexpr std::size_t kPageSize = 4096;
constexpr const char* kChapter = "docs/operations.md, \"A damaged database\", says more";

std::uint64_t new_generation() {
    std::random_device device;
    for (;;) {
        const std::uint64_t number = (std::uint64_t{device()} << 32) | device();
        if (number != 0) return number;
    }
}

// What of the log cannot be used, if anything was acknowledged in it.
std::optional<std::string> what_is_lost(const LogScan& scan, std::uint64_t last) {
    if (scan.entries.empty() || scan.entries.back().number <= last) return std::nullopt;
    std::uint64_t next = last + 1;
    for (const LogScan::Entry& one : scan.entries)
        if (one.number > last) {
            next = one.number;
            break;
        }
    std::string text = fmt::format("entries {} to {} of the log are missing, so that {} to {} cannot be used",
                                   last + 1, next - 1, next, scan.entries.back().number);
    for (const std::string& one : scan.damage) text += "; " + one;
    return text;
}

class Opening {
  public:
    explicit Opening(const SqliteOptions& options) : options_(options), paths_(options.path) {}

    Result<OpenState> open() {
        Result<StateLock> lock = StateLock::take(paths_);
        if (!lock) return std::unexpected(lock.error());
        state_.lock = *std::move(lock);
        if (Result<> ok = check_only_name(paths_); !ok) return std::unexpected(ok.error());
        if (Result<> ok = finish_interrupted(); !ok) return std::unexpected(ok.error());
        const Result<> usable = open_database();
        if (!usable && usable.error().code != ErrorCode::kProtocol) return std::unexpected(usable.error());
        const Result<> ok = usable ? bring_up() : rebuild(usable.error().message);
        if (!ok) return std::unexpected(ok.error());
        // It may be a new file by now.
        if (Result<> locked = state_.lock->take_file(paths_); !locked) return std::unexpected(locked.error());
        return std::move(state_);
    }

  private:
    Result<> finish_interrupted() const {
        const bool is_there = file_exists(paths_.database);
        for (const std::string& ready : {paths_.restoring(), paths_.recovering()}) {
            std::error_code absent;
            if (is_there)
                std::filesystem::remove(ready, absent);
            else if (file_exists(ready))
                return rename_durably(ready, paths_.database);
        }
        return {};
    }

    // kProtocol: it is damaged.
    Result<> open_database() {
        std::error_code absent;
        const std::uintmax_t size = std::filesystem::file_size(paths_.database, absent);
        if ((absent || size == 0) && (file_exists(paths_.snapshot()) || !paths_.logs().empty()))
            return fail(ErrorCode::kProtocol,
                        fmt::format("state file {} is {}, but its snapshot or its log is there",
                                    paths_.database, absent ? "missing" : "empty"));
        return open_and_check(options_);
    }

    Result<> open_and_check(const SqliteOptions& options) {
        Result<std::unique_ptr<Database>> database = open_connection(options);
        if (!database) return std::unexpected(database.error());
        state_.database = *std::move(database);
        const Result<std::int64_t> tables =
            state_.database->query_number("SELECT count(*) FROM sqlite_master");
        if (tables && *tables == 0 && has_history()) return lost_its_history();
        if (Result<> ok = prepare_schema(*state_.database); !ok) return ok;
        // The position even when the rest is damaged: it says how much must be recovered.
        const Result<HistoryPosition> position = history_position(*state_.database);
        if (!position) return std::unexpected(position.error());
        if (position->generation == 0 && has_history()) return lost_its_history();
        position_ = *position;
        return check_database(*state_.database);
    }

    // Whether something was ever acknowledged: a database that knows of nothing cannot be the one then.
    [[nodiscard]] bool has_history() const {
        const auto has_entries = [](const std::string& log) {
            std::error_code absent;
            const std::uintmax_t size = std::filesystem::file_size(log, absent);
            return !absent && size > log_format::kSegmentHeader;
        };
        return file_exists(paths_.snapshot()) || std::ranges::any_of(paths_.logs(), has_entries);
    }

    // A young database is all in its -wal file, and as good as new without that.
    [[nodiscard]] std::unexpected<Error> lost_its_history() const {
        return fail(
            ErrorCode::kProtocol,
            fmt::format("state file {} is empty, but its snapshot or its log is not: its -wal file was "
                        "lost or damaged",
                        paths_.database));
    }

    // The database is good; the log may be ahead of it.
    Result<> bring_up() {
        if (position_->generation == 0) return stand_alone();
        Result<LogScan> scan = scan_log(paths_, position_->generation, position_->entry);
        if (!scan) return std::unexpected(scan.error());
        if (!has_log(*scan)) {
            const std::string text = fmt::format(
                "the log of state file {} ({}*) is missing; what was acknowledged last may be in it",
                paths_.database, paths_.log_prefix());
            if (!options_.recover) return refuse(text);
            state_.recovered = text + "; went on without it";
        }
        const std::uint64_t last = scan->last_without_gap(position_->entry);
        const std::optional<std::string> lost = what_is_lost(*scan, last);
        // After a power failure the database may be behind where the log begins: then the snapshot is not.
        if (lost && snapshot_is_newer()) return rebuild(*lost);
        if (lost && !options_.recover)
            return refuse(fmt::format("the log of state file {} is damaged: {}", paths_.database, *lost));
        if (Result<> ok = replay(*state_.database, *scan, last); !ok) return ok;
        if (lost) state_.recovered = *lost + "; went on without them";
        if (state_.recovered) return start_anew(last);
        return go_on(*scan, last);
    }

    // A new database, a restored backup, or one of a version that had no log.
    Result<> stand_alone() { return start_anew(position_->entry); }

    Result<> go_on(const LogScan& scan, std::uint64_t last) {
        if (Result<> ok = cut_torn_tail(scan); !ok) return ok;
        Result<EntryLog> log = EntryLog::begin(paths_, {position_->generation, last}, options_.fault);
        if (!log) return std::unexpected(log.error());
        state_.log.emplace(*std::move(log));
        if (file_exists(paths_.snapshot())) look_at_snapshot(scan, last);
        return {};
    }

    // Whether the state could be recovered again, as far as that is seen without reading all of the snapshot.
    void look_at_snapshot(const LogScan& scan, std::uint64_t last) {
        const Result<HistoryPosition> snapshot = position_at(paths_.snapshot());
        if (!snapshot) {
            state_.damage =
                fmt::format("the snapshot cannot be recovered from: {}", snapshot.error().message);
            return;
        }
        state_.has_snapshot = snapshot->generation == position_->generation;
        if (!state_.has_snapshot) return;
        const std::optional<std::uint64_t> missing = scan.first_missing(snapshot->entry, last);
        if (!missing) return;
        state_.damage = fmt::format("the log {}* cannot be recovered from: entry {} is missing",
                                    paths_.log_prefix(), *missing);
        for (const std::string& one : scan.damage) state_.damage += "; " + one;
    }

    // What a crash left of a group that nobody was told about.
    Result<> cut_torn_tail(const LogScan& scan) const {
        if (!scan.torn_at) return {};
        const std::string last = paths_.logs().back();
        if (::truncate(last.c_str(), static_cast<off_t>(*scan.torn_at)) != 0)
            return std::unexpected(file_error("cut", last, errno));
        return sync_file(last);
    }

    Result<> start_anew(std::uint64_t entry) {
        const std::vector<std::string> old = paths_.logs();
        const bool keep = state_.recovered.has_value();
        if (keep)
            if (const auto aside = set_aside(old, "damaged-" + time_stamp()); !aside)
                return std::unexpected(aside.error());
        Result<EntryLog> log = begin_generation(*state_.database, paths_, entry, options_.fault);
        if (!log) return std::unexpected(log.error());
        for (const std::string& one : old) {
            std::error_code absent;
            if (!keep && one != log->path()) std::filesystem::remove(one, absent);
        }
        state_.log.emplace(*std::move(log));
        return {};
    }

    // The database cannot be used: a new one from the snapshot and the log.
    Result<> rebuild(const std::string& reason) {
        state_.database.reset();
        const std::string fresh = paths_.recovering() + ".draft";
        const std::optional<HistoryPosition> snapshot = position_of(paths_.snapshot());
        if (!snapshot)
            return refuse(
                fmt::format("{}; there is no usable snapshot {} to recover from", reason, paths_.snapshot()),
                RecoverHelps::kNo);
        Result<LogScan> scan = scan_log(paths_, snapshot->generation, snapshot->entry);
        if (!scan) return std::unexpected(scan.error());
        const std::uint64_t last = scan->last_without_gap(snapshot->entry);
        const std::optional<std::string> lost = lost_by_rebuild(*scan, *snapshot, last);
        if (lost && !options_.recover) return refuse(reason + "; " + *lost);
        if (Result<> ok = fill(fresh, *scan, last); !ok) {
            remove_database(fresh);
            return ok;
        }
        if (Result<> ok = rename_durably(fresh, paths_.recovering()); !ok) return ok;
        const Result<std::string> aside = set_aside(paths_.database_files(), "damaged-" + time_stamp());
        if (!aside) return std::unexpected(aside.error());
        if (Result<> ok = rename_durably(paths_.recovering(), paths_.database); !ok) return ok;
        if (Result<> ok = open_and_check(options_); !ok) return ok;
        state_.recovered = fmt::format(
            "{}; recovered from snapshot {} (entry {}) and the log up to entry {}{}; the damaged file is {}",
            reason, paths_.snapshot(), snapshot->entry, last,
            lost ? ", without what was lost: " + *lost : ": nothing that was acknowledged is lost", *aside);
        return start_anew(last);
    }

    std::optional<std::string> lost_by_rebuild(const LogScan& scan, const HistoryPosition& snapshot,
                                               std::uint64_t last) const {
        if (auto lost = what_is_lost(scan, last)) return lost;
        if (position_ && position_->generation != snapshot.generation)
            return fmt::format("the snapshot {} is of another history than the state file",
                               paths_.snapshot());
        if (position_ && position_->entry > last)
            return fmt::format("entries {} to {} were acknowledged, but are not in the log", last + 1,
                               position_->entry);
        if (position_) return std::nullopt;
        // How far the database had come is not known; then the log must be whole.
        if (!has_log(scan)) return "the log is missing";
        if (!scan.foreign.empty())
            return fmt::format("the log {} is of another history than the snapshot", scan.foreign.front());
        if (scan.torn_at)
            return fmt::format(
                "the log ends in {} byte(s) that are no entry after entry {}: that may be what "
                "was under way when the manager was stopped, or the last that was acknowledged",
                std::filesystem::file_size(paths_.logs().back()) - *scan.torn_at, last);
        return std::nullopt;
    }

    Result<> fill(const std::string& fresh, const LogScan& scan, std::uint64_t last) {
        remove_database(fresh);
        if (Result<> ok = copy_file(paths_.snapshot(), fresh); !ok) return ok;
        SqliteOptions options = options_;
        options.path = fresh;
        Result<std::unique_ptr<Database>> database = open_connection(options);
        if (!database) return std::unexpected(database.error());
        if (Result<> ok = check_database(**database); !ok)
            return refuse("the snapshot is damaged too: " + ok.error().message, RecoverHelps::kNo);
        if (Result<> ok = replay(**database, scan, last); !ok)
            return refuse(ok.error().message, RecoverHelps::kNo);
        if (Result<> ok = (*database)->execute("PRAGMA wal_checkpoint(TRUNCATE)"); !ok) return ok;
        database->reset();
        return sync_file(fresh);
    }

    static void remove_database(const std::string& path) {
        std::error_code absent;
        for (const char* suffix : {"", "-wal", "-shm", "-journal"})
            std::filesystem::remove(path + suffix, absent);
    }

    bool has_log(const LogScan& scan) const { return scan.foreign.size() < paths_.logs().size(); }

    bool snapshot_is_newer() const {
        const std::optional<HistoryPosition> snapshot = position_of(paths_.snapshot());
        return snapshot && snapshot->generation == position_->generation &&
               snapshot->entry > position_->entry;
    }

    static Result<HistoryPosition> position_at(const std::string& path) {
        Result<std::unique_ptr<Database>> database = Database::open(path, Database::Create::kNever);
        if (!database) return std::unexpected(database.error());
        return history_position(**database);
    }
    static std::optional<HistoryPosition> position_of(const std::string& path) {
        const Result<HistoryPosition> position = position_at(path);
        if (!position) return std::nullopt;
        return *position;
    }

    // Whether a start with --recover would go on where this one ends.
    enum class RecoverHelps { kYes, kNo };
    std::unexpected<Error> refuse(const std::string& what, RecoverHelps helps = RecoverHelps::kYes) const {
        return fail(
            ErrorCode::kProtocol,
            fmt::format("{}. Restore a backup (memtide-fabric-manager restore), or {}move {}* away to "
                        "start with an empty state; memory that is bound is adopted then. {}",
                        what,
                        options_.recover || helps == RecoverHelps::kNo
                            ? ""
                            : "start once with --recover to go on with what is left, or ",
                        paths_.database, kChapter));
    }

    const SqliteOptions& options_;
    StatePaths paths_;
    OpenState state_;
    std::optional<HistoryPosition> position_;  // of the database, when it could be read
};

}  // namespace

Result<std::unique_ptr<Database>> open_connection(const SqliteOptions& options) {
    Result<std::unique_ptr<Database>> database = Database::open(options.path);
    if (!database) return database;
    // FULL for what happens before the log is there; commit() relies on the log (set_up_for_log()).
    for (const char* pragma :
         {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA temp_store=MEMORY",
          "PRAGMA wal_autocheckpoint=4000", "PRAGMA cache_size=-32768"})
        if (Result<> ok = (*database)->execute(pragma); !ok) return std::unexpected(ok.error());
    if (options.limit)
        if (Result<> ok = (*database)->execute(
                fmt::format("PRAGMA max_page_count={}", options.limit->value / kPageSize));
            !ok)
            return std::unexpected(ok.error());
    return database;
}

Result<EntryLog> begin_generation(Database& database, const StatePaths& paths, std::uint64_t entry,
                                  EntryLog::Fault fault) {
    const std::uint64_t generation = new_generation();
    // The log first: a database whose generation has no log would be taken for one that lost it.
    Result<EntryLog> log = EntryLog::begin(paths, {generation, entry}, std::move(fault));
    if (!log) return log;
    if (Result<> ok = database.execute("PRAGMA synchronous=FULL"); !ok) return std::unexpected(ok.error());
    if (Result<> ok = database.execute("BEGIN IMMEDIATE"); !ok) return std::unexpected(ok.error());
    Result<> ok = set_history_position(database, {generation, entry});
    if (ok) ok = database.execute("COMMIT");
    if (ok) return log;
    (void)database.execute("ROLLBACK");
    return std::unexpected(ok.error());
}

Result<> replay(Database& database, const LogScan& scan, std::uint64_t last) {
    if (scan.entries.empty()) return {};
    if (Result<> ok = database.execute("BEGIN IMMEDIATE"); !ok) return ok;
    const auto run = [&]() -> Result<> {
        RowWriter rows(database);
        for (const LogScan::Entry& entry : scan.entries) {
            if (entry.number > last) break;
            Result<std::vector<RowChange>> changes = decode_changes(entry.payload);
            Result<> ok = changes ? rows.apply(*changes) : Result<>(std::unexpected(changes.error()));
            if (!ok)
                return std::unexpected(std::move(ok.error())
                                           .with_context(fmt::format("replay entry {} of the log beside {}",
                                                                     entry.number, database.path())));
        }
        return rows.set_entry(last);
    };
    Result<> ok = run();
    if (ok) ok = database.execute("COMMIT");
    if (!ok) (void)database.execute("ROLLBACK");
    return ok;
}

Result<OpenState> open_state(const SqliteOptions& options) { return Opening(options).open(); }

}  // namespace memtide::fm
