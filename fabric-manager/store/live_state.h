#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "common/base/error.h"
#include "fabric-manager/store/entry_log.h"
#include "fabric-manager/store/files.h"
#include "fabric-manager/store/open_transaction.h"
#include "fabric-manager/store/opening.h"
#include "fabric-manager/store/snapshot.h"
#include "fabric-manager/store/state_lock.h"
#include "fabric-manager/store/store.h"

namespace memtide::fm {

// What a running store has open of its state, and how it notices that files change or fail under it, and
// opens them anew. Not thread safe.
struct LiveState {
    LiveState(const SqliteOptions& store_options, OpenState state);

    // Before every write. Opens the state anew after a failed sync; kIo when that cannot be, or not yet, and
    // when a file was renamed, deleted or replaced.
    Result<> check_files();
    // After writes: drops what of the log the newest snapshot has, and has a new one taken when there is
    // much.
    void keep_snapshots();
    void drop_old_log();

    const SqliteOptions& options;
    StatePaths paths;
    std::optional<StateLock> lock;              // given up after the connections
    std::optional<StateConnection> connection;  // nothing while it is being opened anew
    OpenTransaction transaction;
    std::optional<EntryLog> entry_log;  // nothing for ":memory:", as the next
    std::unique_ptr<SnapshotTaker> snapshots;

  private:
    Result<> heal();

    std::optional<FileIdentity> identity_;
    std::chrono::steady_clock::time_point healed_{};  // last tried
};

}  // namespace memtide::fm
