#include "fabric-manager/store/snapshot.h"

#include <filesystem>

#include <fmt/format.h>
#include <sqlite3.h>

#include "common/log/log.h"
#include "fabric-manager/store/files.h"

namespace memtide::fm {

namespace {

constexpr int kPagesAtATime = 512;

Result<> copy_pages(Database& from, Database& to, const std::atomic<bool>* stop) {
    sqlite3_backup* const copy = sqlite3_backup_init(to.handle(), "main", from.handle(), "main");
    if (copy == nullptr) return std::unexpected(to.error("copy"));
    int code = SQLITE_OK;
    while (code == SQLITE_OK && (stop == nullptr || !*stop)) code = sqlite3_backup_step(copy, kPagesAtATime);
    sqlite3_backup_finish(copy);
    if (code == SQLITE_OK) return fail(ErrorCode::kCancelled, "the copy was given up");
    if (code != SQLITE_DONE) return std::unexpected(to.error("copy to"));
    return {};
}

Result<HistoryPosition> copy_to_new(const std::string& from, const std::string& to, CopyKind kind,
                                    const std::atomic<bool>* stop) {
    Result<std::unique_ptr<Database>> source = Database::open(from, Database::Create::kNever);
    if (!source) return std::unexpected(source.error());
    Result<std::unique_ptr<Database>> target = Database::open(to);
    if (!target) return std::unexpected(target.error());
    // The read transaction keeps the moment: without it every write of others would start the copy anew.
    if (Result<> ok = (*source)->execute("BEGIN"); !ok) return std::unexpected(ok.error());
    const Result<HistoryPosition> position = history_position(**source);
    if (!position) return position;
    if (Result<> ok = (*target)->execute("PRAGMA synchronous=OFF"); !ok) return std::unexpected(ok.error());
    if (Result<> ok = copy_pages(**source, **target, stop); !ok) return std::unexpected(ok.error());
    // So that reading the copy writes no files beside it.
    if (Result<> ok = (*target)->execute("PRAGMA journal_mode=DELETE"); !ok)
        return std::unexpected(ok.error());
    if (kind == CopyKind::kBackup)
        if (Result<> ok = set_history_position(**target, {0, position->entry}); !ok)
            return std::unexpected(ok.error());
    return position;
}

}  // namespace

Result<HistoryPosition> copy_database(const std::string& from, const std::string& to, CopyKind kind,
                                      const std::atomic<bool>* stop) {
    const std::string fresh = to + ".new";
    std::error_code absent;
    std::filesystem::remove(fresh, absent);
    Result<HistoryPosition> position = copy_to_new(from, fresh, kind, stop);
    Result<> kept;
    if (position) kept = sync_file(fresh);
    if (position && kept) kept = rename_durably(fresh, to);
    if (position && kept) return position;
    std::filesystem::remove(fresh, absent);
    if (!kept) return std::unexpected(kept.error());
    return position;
}

SnapshotTaker::SnapshotTaker(std::string database, std::string snapshot)
    : database_(std::move(database)), snapshot_(std::move(snapshot)), thread_([this] { run(); }) {}

SnapshotTaker::~SnapshotTaker() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void SnapshotTaker::request() {
    {
        const std::lock_guard lock(mutex_);
        requested_ = true;
    }
    wake_.notify_one();
}

std::optional<HistoryPosition> SnapshotTaker::take_news() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, std::nullopt);
}

void SnapshotTaker::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return stopping_ || requested_; });
        if (stopping_) return;
        lock.unlock();
        const Result<HistoryPosition> taken =
            copy_database(database_, snapshot_, CopyKind::kSnapshot, &stopping_);
        lock.lock();
        requested_ = false;
        if (taken)
            news_ = *taken;
        else if (taken.error().code != ErrorCode::kCancelled)
            log::warning("no snapshot of the state file", {{"error", taken.error()}});
    }
}

}  // namespace memtide::fm
