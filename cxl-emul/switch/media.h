#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/base/error.h"

namespace memtide::emul {

// Shared between the thread that erases and the one that watches it.
struct EraseControl {
    std::atomic<unsigned> percent{0};
    std::atomic<bool> cancel{false};
};

// The file that holds a device's memory: sparse, kept over restarts, locked while a switch has it. Its pages
// may be mapped by hosts at the same time. Thread safe.
class MediaFile {
  public:
    // Creates the file when missing and extends it to `size`; content is kept. Errors: kAlreadyExists when
    // another process has it locked, kPermission when it is somebody else's or a symbolic link, kExhausted on
    // a full disk, kNotFound when the folder is missing, kIo.
    static Result<std::unique_ptr<MediaFile>> open(const std::string& path, Bytes size);
    // Removes the file at `path`, if there is one; false when there is none. Errors: kPermission when it is
    // somebody else's, a symbolic link or no regular file; kAlreadyExists when a switch uses it; kIo.
    static Result<bool> remove(const std::string& path);
    ~MediaFile();
    MediaFile(const MediaFile&) = delete;
    MediaFile& operator=(const MediaFile&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    // kNotFound when the path no longer names this file, kIo when it was cut short: hosts would map another.
    [[nodiscard]] Result<> check() const;

    // Overwrites every byte that was ever written in the range with zeros, gives the blocks back to the file
    // system, and reads back that nothing but zeros is left. Blocks; looks at `control` every MiB. Errors: as
    // check(); kExhausted when the disk is full, kIo when writing fails or something else is read back,
    // kCancelled.
    [[nodiscard]] Result<> erase(Bytes offset, Bytes size, EraseControl& control) const;

  private:
    MediaFile(std::string path, Bytes size, int fd);
    std::string path_;
    Bytes size_;
    int fd_;
};

}  // namespace memtide::emul
