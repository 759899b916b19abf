#include "fabric-manager/store/database.h"

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/resource.h>

namespace memtide::fm {

namespace {

// Whether a file size limit (setrlimit(2)) leaves the database or its log no room for another page. The errno
// of the write that failed says the same (EFBIG), but SQLite reads it after other calls that may have changed
// it.
bool at_file_size_limit(const std::string& path) {
    constexpr std::uintmax_t kLargestWrite = 64 << 10;
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
    for (const char* suffix : {"", "-wal"}) {
        std::error_code absent;
        const std::uintmax_t size = std::filesystem::file_size(path + suffix, absent);
        if (!absent && size + kLargestWrite >= limit.rlim_cur) return true;
    }
    return false;
}

}  // namespace

// --- Statement ---

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement::Statement(Database& database, std::string_view sql) : database_(&database) {
    sqlite3_stmt* prepared = nullptr;
    // A failure leaves a null statement; stepping it then reports SQLITE_MISUSE, and run() the error.
    sqlite3_prepare_v3(database.handle_.get(), sql.data(), static_cast<int>(sql.size()),
                       SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
    statement_.reset(prepared);
}

Statement& Statement::bind(std::string_view text) {
    sqlite3_bind_text64(statement_.get(), next_++, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
}

Statement& Statement::bind(std::int64_t number) {
    sqlite3_bind_int64(statement_.get(), next_++, number);
    return *this;
}

Result<> Statement::run() {
    const Result<bool> stepped = step();
    reset();
    if (!stepped) return std::unexpected(stepped.error());
    return {};
}

Result<bool> Statement::step() {
    if (!statement_) return std::unexpected(database_->error("prepare a statement"));
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return std::unexpected(database_->error("run a statement"));
}

void Statement::reset() {
    if (!statement_) return;
    sqlite3_reset(statement_.get());
    sqlite3_clear_bindings(statement_.get());
    next_ = 1;
}

std::string Statement::text(int column) const { return std::string(view(column)); }

std::string_view Statement::view(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    if (data == nullptr) return {};
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_.get(), column); }

// --- Database ---

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Create create) {
    // Without its count of bytes SQLite needs no lock for each allocation, which the store and the snapshot
    // would fight for. Refused when SQLite is in use already, which does no harm.
    static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    (void)configured;
    // Others that read it (a backup, the snapshot) hold locks for moments only.
    constexpr int kBusyMs = 3000;
    auto database = std::make_unique<Database>();
    database->path_ = path;
    sqlite3* handle = nullptr;
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create == Create::kIfMissing ? SQLITE_OPEN_CREATE : 0);
    const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    database->handle_.reset(handle);
    if (code != SQLITE_OK) return std::unexpected(database->error("open"));
    sqlite3_extended_result_codes(handle, 1);
    sqlite3_busy_timeout(handle, kBusyMs);
    return database;
}

Result<> Database::execute(const std::string& sql) {
    if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        return std::unexpected(error(sql.substr(0, sql.find('\n'))));
    return {};
}

Result<std::string> Database::query_text(const std::string& sql) {
    Statement statement(*this, sql);
    const Result<bool> row = statement.step();
    if (!row) return std::unexpected(error(sql));
    return *row ? statement.text(0) : std::string();
}

Result<std::int64_t> Database::query_number(const std::string& sql) {
    Statement statement(*this, sql);
    const Result<bool> row = statement.step();
    if (!row) return std::unexpected(error(sql));
    return *row ? statement.number(0) : 0;
}

bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

int Database::changes() const { return sqlite3_changes(handle_.get()); }

Error Database::error(std::string_view action) const {
    const int code = handle_ ? sqlite3_errcode(handle_.get()) & 0xff : SQLITE_NOMEM;
    const std::string text = fmt::format("{} on state file {}: {}", action, path_,
                                         handle_ ? sqlite3_errmsg(handle_.get()) : "no memory");
    const int system_error = handle_ ? sqlite3_system_errno(handle_.get()) : 0;
    switch (code) {
        case SQLITE_FULL:
        case SQLITE_IOERR:
            if (system_error == EROFS)
                return {
                    ErrorCode::kPermission,
                    text + " (its file system is read-only; the manager goes on when it can be written to)"};
            // A file size limit and a quota are full disks too, but SQLite knows only ENOSPC.
            if (code == SQLITE_IOERR && system_error != EFBIG && system_error != EDQUOT &&
                !at_file_size_limit(path_))
                return {ErrorCode::kIo, text};
            return {ErrorCode::kExhausted,
                    text + (code == SQLITE_FULL
                                ? " (make room on its disk, or raise limits: state; nothing was lost)"
                                : " (make room on its disk; nothing was lost)")};
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return {ErrorCode::kConflict,
                    text + " (another fabric manager has it open; stop that one or use another state file)"};
        case SQLITE_CONSTRAINT:
            return {ErrorCode::kConflict, text};
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return {ErrorCode::kProtocol, text + " (the file is damaged or not a database)"};
        case SQLITE_PERM:
        case SQLITE_READONLY:
        case SQLITE_AUTH:
            return {ErrorCode::kPermission, text + " (the manager needs to write the file and its folder)"};
        case SQLITE_CANTOPEN:
            return {ErrorCode::kIo, text + " (does its folder exist, and may the manager write to it?)"};
        case SQLITE_NOMEM:
            return {ErrorCode::kExhausted, text};
        default:
            return {ErrorCode::kIo, text};
    }
}

}  // namespace memtide::fm
