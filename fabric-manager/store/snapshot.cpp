#include "fabric-manager/store/snapshot.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "common/log/log.h"
#include "fabric-manager/store/files.h"

namespace memtide::fm {

namespace {

constexpr int kPagesAtATime = 512;
constexpr std::chrono::seconds kRetryPause{30};

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

void SnapshotTaker::check(std::chrono::milliseconds in) {
    {
        const std::lock_guard lock(mutex_);
        check_at_ = Clock::now() + in;
    }
    wake_.notify_one();
}

void SnapshotTaker::note_damage(const std::string& what) {
    {
        const std::lock_guard lock(mutex_);
        tell(what);
        requested_ = true;
    }
    wake_.notify_one();
}

void SnapshotTaker::watch_damage(std::function<void(const std::string& damage)> changed) {
    const std::lock_guard lock(mutex_);
    damage_changed_ = std::move(changed);
    for (const std::string& one : std::exchange(untold_, {})) damage_changed_(one);
}

void SnapshotTaker::tell(const std::string& damage) {
    damaged_ = !damage.empty();
    if (damage_changed_)
        damage_changed_(damage);
    else
        untold_.push_back(damage);
}

std::optional<HistoryPosition> SnapshotTaker::take_news() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, std::nullopt);
}

std::optional<SnapshotTaker::Clock::time_point> SnapshotTaker::next_work() const {
    return requested_ ? not_before_ : check_at_;
}

void SnapshotTaker::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        const std::optional<Clock::time_point> time = next_work();
        if (!time) {
            wake_.wait(lock);
        } else if (Clock::now() < *time) {
            wake_.wait_until(lock, *time);
        } else if (requested_) {
            take(lock);
        } else {
            check_now(lock);
        }
    }
}

void SnapshotTaker::take(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    const Result<HistoryPosition> taken =
        copy_database(database_, snapshot_, CopyKind::kSnapshot, &stopping_);
    lock.lock();
    if (taken) {
        requested_ = false;
        check_at_.reset();
        news_ = *taken;
        if (damaged_) tell("");
        return;
    }
    not_before_ = Clock::now() + kRetryPause;
    if (taken.error().code != ErrorCode::kCancelled)
        log::warning("no snapshot of the state file", {{"error", taken.error()}});
}

void SnapshotTaker::check_now(std::unique_lock<std::mutex>& lock) {
    check_at_.reset();
    lock.unlock();
    const Result<std::unique_ptr<Database>> database = Database::open(snapshot_, Database::Create::kNever);
    const Result<> sound = database ? check_database(**database) : std::unexpected(database.error());
    lock.lock();
    if (sound) return;
    tell(fmt::format("the snapshot cannot be recovered from: {}", sound.error().message));
    requested_ = true;
}

}  // namespace memtide::fm
