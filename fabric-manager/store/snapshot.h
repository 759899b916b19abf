#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "fabric-manager/store/schema.h"

// Copies of a database that somebody is using, each a whole database itself.
namespace memtide::fm {

enum class CopyKind {
    kSnapshot,  // belongs to the log beside it
    kBackup,    // stands alone
};

// Copies the database as it is at one moment to `to`, durably and by a rename, so that `to` is a whole copy
// or what it was before. Others may write to the database meanwhile. Says where in its history the copy is.
// kCancelled when *stop became true.
Result<HistoryPosition> copy_database(const std::string& from, const std::string& to, CopyKind kind,
                                      const std::atomic<bool>* stop = nullptr);

// Keeps a snapshot from which the state can be recovered, on a thread of its own: copying and reading it take
// seconds when there is much. Thread safe.
class SnapshotTaker {
  public:
    using Clock = std::chrono::steady_clock;

    SnapshotTaker(std::string database, std::string snapshot);
    ~SnapshotTaker();
    SnapshotTaker(const SnapshotTaker&) = delete;
    SnapshotTaker& operator=(const SnapshotTaker&) = delete;

    // Takes one, and tries again until it could. Does nothing while one is being taken.
    void request();
    // Reads all of the one that is there in a while, unless another is taken before; is it damaged, it is
    // replaced.
    void check(std::chrono::milliseconds in);
    // The state could not be recovered from snapshot and log: takes a snapshot that makes up for that.
    void note_damage(const std::string& what);
    // As Store::watch_damage().
    void watch_damage(std::function<void(const std::string& damage)> changed);
    // Where the newest snapshot that this process took is; each is told once.
    std::optional<HistoryPosition> take_news();

  private:
    void run();
    void take(std::unique_lock<std::mutex>& lock);
    void check_now(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] std::optional<Clock::time_point> next_work() const;
    void tell(const std::string& damage);

    std::string database_, snapshot_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool requested_ = false;
    Clock::time_point not_before_{};  // after one that failed
    std::optional<Clock::time_point> check_at_;
    bool damaged_ = false;  // as told last
    std::function<void(const std::string&)> damage_changed_;
    std::vector<std::string> untold_;  // while nobody listens
    std::atomic<bool> stopping_{false};
    std::optional<HistoryPosition> news_;
    std::thread thread_;
};

}  // namespace memtide::fm
