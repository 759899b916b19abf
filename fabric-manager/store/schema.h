#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "fabric-manager/store/database.h"

// The tables, and how a database of an earlier version becomes one of this version.
namespace memtide::fm {

inline constexpr std::int64_t kSchemaVersion = 3;
inline constexpr std::int64_t kApplicationId = 0x4d454d54;  // "MEMT" in the file's header

// Creates the tables in an empty database; takes an older one to this version, step by step in one
// transaction. kInvalidArgument: a database of another program or of a newer version. Nothing has changed
// after an error.
Result<> prepare_schema(Database& database);

// Where the database is in its history (entry_log.h).
struct HistoryPosition {
    std::uint64_t generation = 0;  // 0: a copy that stands alone, without a log
    std::uint64_t entry = 0;       // the last one that is in it
};
// kProtocol when the rows that hold it are missing or damaged.
Result<HistoryPosition> history_position(Database& database);
Result<> set_history_position(Database& database, HistoryPosition position);

// Reads everything: the structure of the file, then the checksum of every row. kProtocol when it is damaged,
// with the table and the row.
Result<> check_database(Database& database);

}  // namespace memtide::fm
