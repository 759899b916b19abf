#include "fabric-manager/store/live_state.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/store/schema.h"

namespace memtide::fm {

namespace {

constexpr std::chrono::seconds kHealPause{1};

}  // namespace

LiveState::LiveState(const SqliteOptions& store_options, OpenState state)
    : options(store_options),
      paths(options.path),
      lock(std::move(state.lock)),
      connection(std::in_place, std::move(state.database)),
      entry_log(std::move(state.log)),
      identity_(identity_of(paths.database)) {
    if (!entry_log) return;
    (void)connection->database->execute("PRAGMA synchronous=NORMAL");  // the log is what is durable
    snapshots = std::make_unique<SnapshotTaker>(paths.database, paths.snapshot());
    if (!state.has_snapshot) snapshots->request();
    if (!state.damage.empty()) snapshots->note_damage(state.damage);
}

Result<> LiveState::check_files() {
    if (!entry_log) return {};
    if (entry_log->broken() || !connection)
        if (Result<> ok = heal(); !ok) return ok;
    const auto is_there = [&](const std::string& path) {
        return fail(ErrorCode::kIo,
                    fmt::format("{} was renamed, deleted or replaced while the manager runs: put it back, or "
                                "restart the manager (it recovers from the snapshot and the entry_log)",
                                path));
    };
    if (identity_of(paths.database) != identity_) return is_there(paths.database);
    if (!file_exists(entry_log->path())) return is_there(entry_log->path());
    return {};
}

// After a failed sync nobody knows what of the log and the database is on the disk. Both are begun anew: the
// database is opened and read again, and what it says goes on in a log of a new generation, in which the
// group that failed is not.
Result<> LiveState::heal() {
    const auto now = std::chrono::steady_clock::now();
    if (now - healed_ < kHealPause)
        return fail(ErrorCode::kIo,
                    fmt::format("state file {}: a sync of its log failed; it is opened anew in "
                                "a moment",
                                paths.database));
    healed_ = now;
    const std::uint64_t last = entry_log->position().last;
    connection.reset();
    Result<std::unique_ptr<Database>> database = open_connection(options);
    if (!database) return std::unexpected(database.error());
    if (Result<> ok = check_database(**database); !ok) return ok;
    const Result<HistoryPosition> position = history_position(**database);
    if (!position) return std::unexpected(position.error());
    if (position->entry + transaction.entries() != last)
        return fail(ErrorCode::kIo,
                    fmt::format("state file {} is at entry {} instead of {} after a failed sync: restart the "
                                "manager",
                                paths.database, position->entry, last - transaction.entries()));
    StateConnection fresh(*std::move(database));
    if (Result<> ok = transaction.commit(fresh); !ok) return ok;
    const std::vector<std::string> old = paths.logs();
    Result<EntryLog> begun = begin_generation(*fresh.database, paths, last, options.fault);
    if (!begun) return std::unexpected(begun.error());
    if (Result<> ok = fresh.database->execute("PRAGMA synchronous=NORMAL"); !ok) return ok;
    connection.emplace(std::move(fresh));
    entry_log.emplace(*std::move(begun));
    for (const std::string& one : old) {
        std::error_code absent;
        if (one != entry_log->path()) std::filesystem::remove(one, absent);
    }
    snapshots->request();
    log::warning("state file opened anew after a failed sync",
                 {{"state", paths.database}, {"entry", entry_log->position().last}});
    return {};
}

// What the newest snapshot has.
void LiveState::drop_old_log() {
    if (const std::optional<HistoryPosition> taken = snapshots->take_news())
        if (taken->generation == entry_log->position().generation) entry_log->remove_up_to(taken->entry);
}

void LiveState::keep_snapshots() {
    drop_old_log();
    if (entry_log->broken() || entry_log->segment_bytes() < options.snapshot_after.value) return;
    std::error_code absent;
    const std::uintmax_t size = std::filesystem::file_size(paths.database, absent);
    if (!absent && entry_log->segment_bytes() < 2 * size) return;
    if (const Result<> ok = entry_log->rotate(); !ok) {
        log::warning("no new segment of the log", {{"error", ok.error()}});
        return;
    }
    snapshots->request();
}

}  // namespace memtide::fm
