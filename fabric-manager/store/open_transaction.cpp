#include "fabric-manager/store/open_transaction.h"

#include <utility>

namespace memtide::fm {

StateConnection::StateConnection(std::unique_ptr<Database> opened)
    : database(std::move(opened)),
      rows(*database),
      begin(*database, "BEGIN IMMEDIATE"),
      commit(*database, "COMMIT"),
      rollback(*database, "ROLLBACK"),
      events(*database, "SELECT body, id FROM events WHERE id>? ORDER BY id LIMIT ?"),
      history(*database,
              "SELECT body, id FROM events WHERE json_extract(body,'$.composition')=? AND id>? "
              "ORDER BY id LIMIT ?") {}

Result<> OpenTransaction::open(StateConnection& connection) {
    if (connection.database->in_transaction()) return {};
    if (Result<> ok = connection.begin.run(); !ok) return ok;
    for (const std::vector<RowChange>& changes : entries_) {
        if (Result<> ok = connection.rows.apply(changes); !ok) {
            roll_back(connection);
            return ok;
        }
    }
    return {};
}

void OpenTransaction::keep(std::uint64_t entry, std::vector<RowChange> changes) {
    if (entries_.empty()) since_ = Clock::now();
    entries_.push_back(std::move(changes));
    last_ = entry;
}

void OpenTransaction::roll_back(StateConnection& connection) {
    if (connection.database->in_transaction()) (void)connection.rollback.run();
}

Result<> OpenTransaction::commit(StateConnection& connection) {
    if (entries_.empty()) {
        roll_back(connection);
        return {};
    }
    Result<> ok = open(connection);
    if (ok) ok = connection.rows.set_entry(last_);
    if (ok) ok = connection.commit.run();
    if (!ok) {
        roll_back(connection);
        return ok;
    }
    entries_.clear();
    return {};
}

}  // namespace memtide::fm
