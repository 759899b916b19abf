#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

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

// Takes snapshots on a thread of its own: copying takes seconds when there is much.
class SnapshotTaker {
  public:
    SnapshotTaker(std::string database, std::string snapshot);
    ~SnapshotTaker();
    SnapshotTaker(const SnapshotTaker&) = delete;
    SnapshotTaker& operator=(const SnapshotTaker&) = delete;

    // Does nothing while one is being taken.
    void request();
    // Where the newest snapshot that this process took is; each is told once.
    std::optional<HistoryPosition> take_news();

  private:
    void run();

    std::string database_, snapshot_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool requested_ = false;
    std::atomic<bool> stopping_{false};
    std::optional<HistoryPosition> news_;
    std::thread thread_;
};

}  // namespace memtide::fm
