#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

// Just enough of SQLite with RAII and Result. Not thread safe.
namespace memtide::fm {

class Database;

// A prepared statement, to be run again and again: bind in order, step, read columns, reset.
class Statement {
  public:
    Statement() = default;
    Statement(Database& database, std::string_view sql);

    Statement& bind(std::string_view text);  // must live until the next run() or step()
    Statement& bind(std::int64_t number);
    Statement& bind(std::uint64_t number) { return bind(static_cast<std::int64_t>(number)); }

    // Runs to the end, forgets the bindings.
    Result<> run();
    // True when there is a row to read.
    Result<bool> step();
    void reset();
    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] std::string_view view(int column) const;  // until the next step()
    [[nodiscard]] std::int64_t number(int column) const;

  private:
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    Database* database_ = nullptr;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
    int next_ = 1;
};

class Database {
  public:
    enum class Create { kIfMissing, kNever };
    static Result<std::unique_ptr<Database>> open(const std::string& path,
                                                  Create create = Create::kIfMissing);

    Result<> execute(const std::string& sql);
    Result<std::string> query_text(const std::string& sql);
    Result<std::int64_t> query_number(const std::string& sql);
    [[nodiscard]] bool in_transaction() const;
    // Rows the last statement changed.
    [[nodiscard]] int changes() const;
    // The last error as our own: kExhausted for a full disk, kConflict when locked or a constraint failed,
    // kProtocol for a damaged or foreign file, kPermission, kIo.
    [[nodiscard]] Error error(std::string_view action) const;
    // For SQLite's own interfaces; stays ours.
    [[nodiscard]] sqlite3* handle() const { return handle_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    friend class Statement;
    struct Close {
        void operator()(sqlite3* handle) const;
    };
    std::string path_;
    std::unique_ptr<sqlite3, Close> handle_;
};

// Calls read(statement) for each row of the query; it answers Result<>, an error ends it.
template <typename Read>
Result<> each_row(Database& database, std::string_view sql, Read read) {
    Statement statement(database, sql);
    for (;;) {
        const Result<bool> row = statement.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) return {};
        if (Result<> ok = read(statement); !ok) return ok;
    }
}

}  // namespace memtide::fm
