#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

// What the store does with files beside SQLite. Errors name the path and what to do; kExhausted for a full
// disk, a quota or a file size limit, kPermission for a read-only file system, kIo otherwise.
namespace memtide::fm {

// An open file descriptor.
class File {
  public:
    File() = default;
    explicit File(int fd) : fd_(fd) {}
    ~File() { close(); }
    File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    File& operator=(File&& other) noexcept {
        if (this != &other) {
            close();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }
    void close();

  private:
    int fd_ = -1;
};

// As open(2). What is to be made is not looked for behind a link.
Result<File> open_file(const std::string& path, int flags);
Result<std::string> read_file(const std::string& path);
Result<> write_all(const File& file, std::string_view bytes, const std::string& path);
// Makes what was written durable; so for a folder: which names are in it.
Result<> sync_file(const std::string& path);
Result<> sync_folder_of(const std::string& path);
Result<> copy_file(const std::string& from, const std::string& to);
// Over what is at `to`; durable when it returns.
Result<> rename_durably(const std::string& from, const std::string& to);
bool file_exists(const std::string& path);
// As errno says it, in the classes above.
Error file_error(std::string_view action, const std::string& path, int error_number);

// Which file a path names: another one after it was renamed, deleted or replaced.
struct FileIdentity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
std::optional<FileIdentity> identity_of(const std::string& path);

// The names of everything that belongs to one state file.
struct StatePaths {
    // A symbolic link stands for what it points to: names beside the link would be those of another state.
    explicit StatePaths(std::string path);
    std::string database;
    [[nodiscard]] std::string snapshot() const { return database + ".snapshot"; }
    [[nodiscard]] std::string lock() const { return database + ".lock"; }
    [[nodiscard]] std::string log_prefix() const { return database + ".log-"; }
    // Segments of the log, in order of their entries.
    [[nodiscard]] std::vector<std::string> logs() const;
    // What a restore or a recovery leaves when it is interrupted after the old file went and before this one
    // came: whole, and to be taken for the database.
    [[nodiscard]] std::string restoring() const { return database + ".restoring"; }
    [[nodiscard]] std::string recovering() const { return database + ".recovering"; }
    // The database with its -wal and -shm, which must not be left to another database; itself last.
    [[nodiscard]] std::vector<std::string> database_files() const;
};

// "20260131-235959", UTC: part of the names of files that were put aside.
std::string time_stamp();
// Renames each file that exists to its name + "." + suffix, in this order. Answers the new name of the last.
Result<std::string> set_aside(const std::vector<std::string>& files, const std::string& suffix);

}  // namespace memtide::fm
