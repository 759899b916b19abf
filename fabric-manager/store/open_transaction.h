#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/error.h"
#include "fabric-manager/store/database.h"
#include "fabric-manager/store/row_change.h"
#include "fabric-manager/store/rows.h"

namespace memtide::fm {

// What a connection is used with; goes and comes with it.
struct StateConnection {
    explicit StateConnection(std::unique_ptr<Database> opened);

    std::unique_ptr<Database> database;
    RowWriter rows;
    Statement begin, commit, rollback, events, history;
};

// The transaction in which entries of the log reach the database. It stays open over many groups of them,
// since they are durable in the log already, and a commit for each group would cost more than all the rest.
// What it has is kept here as well, and carried out again when SQLite gives the transaction up (a full disk)
// or the connection is a new one.
class OpenTransaction {
  public:
    using Clock = std::chrono::steady_clock;

    // Begins it unless it is open, with every entry since the last commit.
    Result<> open(StateConnection& connection);
    // The changes of an entry that is in the log now, and that was carried out in the transaction.
    void keep(std::uint64_t entry, std::vector<RowChange> changes);
    // Gives up what was carried out and not kept.
    void roll_back(StateConnection& connection);
    // An error leaves all entries to be carried out again.
    Result<> commit(StateConnection& connection);

    [[nodiscard]] std::size_t entries() const { return entries_.size(); }
    // When the first of them came.
    [[nodiscard]] Clock::time_point since() const { return since_; }

  private:
    std::vector<std::vector<RowChange>> entries_;
    std::uint64_t last_ = 0;
    Clock::time_point since_{};
};

}  // namespace memtide::fm
