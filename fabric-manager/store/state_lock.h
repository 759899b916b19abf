#pragma once

#include "common/base/error.h"
#include "fabric-manager/store/files.h"

namespace memtide::fm {

// Held by whoever may change a state; released by the kernel when the process ends, however it ends. It is
// two locks: one of the name (a file beside the database, which is there before the database is and stays
// when another takes its place), one of the database file itself, whatever its name: a hard link, a bind
// mount. Both are flock(2), which does not meet the byte-range locks of SQLite.
//
// It must be given up after every connection to the database: closing any descriptor of a file drops all
// byte-range locks that the process has on it.
class StateLock {
  public:
    // Takes both; the second only when there is a database. kConflict when another process has either.
    static Result<StateLock> take(const StatePaths& paths);
    // For the file that has the name of the database now, after it was made or replaced.
    Result<> take_file(const StatePaths& paths);

  private:
    explicit StateLock(File name) : name_(std::move(name)) {}

    File name_, file_;
};

// kConflict when the database has several names (hard links) and its log is not beside this one: log and -wal
// are beside the name with which it was used, and it would be written to without them; or it is a backup,
// which must stay as it is.
Result<> check_only_name(const StatePaths& paths);

}  // namespace memtide::fm
