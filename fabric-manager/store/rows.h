#pragma once

#include <cstdint>
#include <vector>

#include "common/base/error.h"
#include "fabric-manager/store/database.h"
#include "fabric-manager/store/row_change.h"
#include "fabric-manager/store/store.h"

// Between row changes and SQL. Nothing here begins or ends transactions.
namespace memtide::fm {

class RowWriter {
  public:
    explicit RowWriter(Database& database);
    // kConflict when a composition is not at the revision before, or exists already.
    Result<> apply(const RowChange& change);
    Result<> apply(const std::vector<RowChange>& changes);
    // The last entry of the log that is in the database.
    Result<> set_entry(std::uint64_t entry);

  private:
    Result<> update(const RowChange& change);

    Database& database_;
    Statement insert_, update_, forget_, event_, forget_events_, quarantine_, lift_, host_, key_, forget_key_;
    Statement entry_;
};

// Everything but the events. kProtocol for what cannot be read, with table and row.
Result<StoreContents> read_contents(Database& database);

}  // namespace memtide::fm
