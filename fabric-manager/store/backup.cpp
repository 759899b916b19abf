#include "fabric-manager/store/backup.h"

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_owner.h"
#include "fabric-manager/store/entry_log.h"
#include "fabric-manager/store/files.h"
#include "fabric-manager/store/opening.h"
#include "fabric-manager/store/row_change.h"
#include "fabric-manager/store/schema.h"
#include "fabric-manager/store/snapshot.h"
#include "fabric-manager/store/state_lock.h"

namespace memtide::fm {

namespace {

void remove_database(const std::string& path) {
    std::error_code absent;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"})
        std::filesystem::remove(path + suffix, absent);
}

// Owner and mode as those of what it replaces.
Result<> take_place_of(const std::string& fresh, const std::string& replaced) {
    const Result<File> file = open_file(fresh, O_RDWR);
    if (!file) return std::unexpected(file.error());
    if (Result<> given = give_to_owner_of(file->fd(), fresh, replaced); !given) return given;
    struct stat status{};
    if (::stat(replaced.c_str(), &status) == 0 && ::fchmod(file->fd(), status.st_mode & 0777) != 0)
        return std::unexpected(file_error("set the mode of", fresh, errno));
    return {};
}

std::string facts(Database& database) {
    const Result<std::int64_t> compositions = database.query_number("SELECT count(*) FROM compositions");
    const Result<std::int64_t> events = database.query_number("SELECT count(*) FROM events");
    return fmt::format("{} compositions, {} events", compositions.value_or(0), events.value_or(0));
}

Result<std::string> read_beginning(const std::string& path, std::size_t size) {
    const Result<File> file = open_file(path, O_RDONLY);
    if (!file) return std::unexpected(file.error());
    std::string bytes(size, '\0');
    const ssize_t got = ::pread(file->fd(), bytes.data(), size, 0);
    if (got < 0) return std::unexpected(file_error("read", path, errno));
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
}

// Opens a copy, takes it to this version and reads all of it.
Result<std::unique_ptr<Database>> open_copy(const std::string& path) {
    constexpr std::string_view kMagic("SQLite format 3", 16);  // the NUL behind it, too
    const Result<std::string> begin = read_beginning(path, kMagic.size());
    if (!begin) return std::unexpected(begin.error());
    if (*begin != kMagic)
        return fail(ErrorCode::kInvalidArgument,
                    begin->empty()
                        ? "it is empty, and no backup of a state file"
                        : "it is no backup of a state file; `memtide-fabric-manager backup` makes them");
    Result<std::unique_ptr<Database>> database = Database::open(path, Database::Create::kNever);
    if (!database) return database;
    const Result<std::int64_t> tables = (*database)->query_number("SELECT count(*) FROM sqlite_master");
    if (!tables) return std::unexpected(tables.error());
    if (Result<> ok = prepare_schema(**database); !ok) return std::unexpected(ok.error());
    if (Result<> ok = check_database(**database); !ok) return std::unexpected(ok.error());
    return database;
}

Result<> leap_revisions(Database& database) {
    std::vector<std::pair<std::string, std::uint64_t>> hosts;
    Result<> ok = each_row(database, "SELECT host, revision FROM hosts", [&](const Statement& row) {
        hosts.emplace_back(row.text(0), static_cast<std::uint64_t>(row.number(1)) + kRevisionLeap);
        return Result<>();
    });
    Statement update(database, "UPDATE hosts SET revision=?, sum=? WHERE host=?");
    for (const auto& [host, revision] : hosts) {
        if (!ok) return ok;
        ok = update.bind(revision).bind(row_sum(RowTable::kHosts, host, revision, 0, {})).bind(host).run();
    }
    return ok;
}

Result<> prepare_for_restore(const std::string& path, std::string& told) {
    Result<std::unique_ptr<Database>> database = open_copy(path);
    if (!database) return std::unexpected(database.error());
    told = facts(**database);
    const Result<HistoryPosition> position = history_position(**database);
    if (!position) return std::unexpected(position.error());
    if (Result<> ok = (*database)->execute("BEGIN IMMEDIATE"); !ok) return ok;
    // A snapshot may be restored too: its log is not beside it any more.
    if (Result<> ok = set_history_position(**database, {0, position->entry}); !ok) return ok;
    if (Result<> ok = leap_revisions(**database); !ok) return ok;
    if (Result<> ok = (*database)->execute("COMMIT"); !ok) return ok;
    return (*database)->execute("PRAGMA journal_mode=DELETE");
}

// A running manager's database lags behind its log: what was acknowledged before the copy was made is in one
// of them.
Result<std::uint64_t> bring_up(const std::string& copy, const StatePaths& paths, const HistoryPosition& at) {
    Result<LogScan> scan = scan_log(paths, at.generation, at.entry);
    if (!scan) return std::unexpected(scan.error());
    const std::uint64_t last = scan->last_without_gap(at.entry);
    Result<std::unique_ptr<Database>> database = Database::open(copy, Database::Create::kNever);
    if (!database) return std::unexpected(database.error());
    if (Result<> ok = replay(**database, *scan, last); !ok) return std::unexpected(ok.error());
    return last;
}

}  // namespace

Result<std::string> backup_state(const std::string& state, const std::string& out) {
    if (!file_exists(state))
        return fail(ErrorCode::kNotFound, fmt::format("there is no state file {} to back up", state));
    if (file_exists(out))
        return fail(ErrorCode::kAlreadyExists,
                    fmt::format("{} is there already; name another file for the backup", out));
    // Without a manager the database may lag behind its log: opening brings it up, and keeps managers away.
    std::optional<OpenState> own;
    if (Result<OpenState> opened = open_state({.path = state}))
        own.emplace(*std::move(opened));
    else if (opened.error().code != ErrorCode::kConflict)
        return std::unexpected(opened.error());
    const StatePaths paths(state);
    if (!own && paths.logs().empty())
        return fail(ErrorCode::kConflict,
                    fmt::format("a fabric manager has the state file {} open by another of its names: use "
                                "that one; what was acknowledged last is in the log beside it",
                                paths.database));
    const std::string draft = out + ".unchecked";
    remove_database(draft);
    const Result<HistoryPosition> copied = copy_database(paths.database, draft, CopyKind::kBackup);
    if (!copied) return std::unexpected(copied.error());
    const Result<std::uint64_t> entry = own ? copied->entry : bring_up(draft, paths, *copied);
    if (!entry) {
        remove_database(draft);
        return std::unexpected(entry.error());
    }
    std::string told;
    {
        const Result<std::unique_ptr<Database>> checked = open_copy(draft);
        if (!checked) {
            remove_database(draft);
            return std::unexpected(checked.error());
        }
        told = facts(**checked);
    }
    if (Result<> ok = rename_durably(draft, out); !ok) return std::unexpected(ok.error());
    return fmt::format("{} backed up to {}: {}, up to entry {}", state, out, told, *entry);
}

Result<std::string> restore_state(const std::string& state, const std::string& in) {
    const StatePaths paths(state);
    const Result<StateLock> lock = StateLock::take(paths);
    if (!lock) return std::unexpected(lock.error());
    const std::string draft = paths.restoring() + ".draft";
    remove_database(draft);
    if (Result<> ok = copy_file(in, draft); !ok) return std::unexpected(ok.error());
    std::string told;
    Result<> ready = take_place_of(draft, state);
    if (ready) ready = prepare_for_restore(draft, told);
    if (ready) ready = sync_file(draft);
    if (!ready) {
        remove_database(draft);
        return std::unexpected(std::move(ready.error()).with_context("restore " + in));
    }
    if (Result<> ok = rename_durably(draft, paths.restoring()); !ok) return std::unexpected(ok.error());
    std::vector<std::string> old = paths.logs();
    old.push_back(paths.snapshot());
    for (std::string& one : paths.database_files()) old.push_back(std::move(one));  // last: see restoring()
    const bool had_one = file_exists(state);
    const Result<std::string> aside = set_aside(old, "before-restore-" + time_stamp());
    if (!aside) return std::unexpected(aside.error());
    if (Result<> ok = rename_durably(paths.restoring(), paths.database); !ok)
        return std::unexpected(ok.error());
    return fmt::format("{} restored from {}: {}{}", state, in, told,
                       had_one ? "; what was there is " + *aside + " now" : "");
}

}  // namespace memtide::fm
