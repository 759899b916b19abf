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

// What a device's memory is made of.
class Media {
  public:
    virtual ~Media() = default;
    Media() = default;
    Media(const Media&) = delete;
    Media& operator=(const Media&) = delete;

    // By which the hosts' side finds it; unique among the devices of a process.
    [[nodiscard]] virtual const std::string& path() const = 0;
    // An error when hosts could not be given this memory now.
    [[nodiscard]] virtual Result<> check() const = 0;
    // Makes every byte of the range zero, and makes sure that it is. Blocks unless erases_at_once().
    [[nodiscard]] virtual Result<> erase(Bytes offset, Bytes size, EraseControl& control) = 0;
    // As erase(), for a device that only says so: everything stays as it is.
    virtual void pretend_to_erase(Bytes offset, Bytes size) {
        (void)offset;
        (void)size;
    }
    // Whether erase() returns so soon that it needs no thread of its own.
    [[nodiscard]] virtual bool erases_at_once() const { return false; }
};

// The file that holds a device's memory: sparse, kept over restarts, locked while a switch has it. Its pages
// may be mapped by hosts at the same time. Thread safe.
class MediaFile final : public Media {
  public:
    // Creates the file when missing and extends it to `size`; content is kept. Errors: kAlreadyExists when
    // another process has it locked, kPermission when it is somebody else's or a symbolic link, kExhausted on
    // a full disk, kNotFound when the folder is missing, kIo.
    static Result<std::unique_ptr<MediaFile>> open(const std::string& path, Bytes size);
    // Removes the file at `path`, if there is one; false when there is none. Errors: kPermission when it is
    // somebody else's, a symbolic link or no regular file; kAlreadyExists when a switch uses it; kIo.
    static Result<bool> remove(const std::string& path);
    ~MediaFile() override;

    [[nodiscard]] const std::string& path() const override { return path_; }

    // kNotFound when the path no longer names this file, kIo when it was cut short: hosts would map another.
    [[nodiscard]] Result<> check() const override;

    // Overwrites every byte that was ever written in the range with zeros, gives the blocks back to the file
    // system, and reads back that nothing but zeros is left. Blocks; looks at `control` every MiB. Errors: as
    // check(); kExhausted when the disk is full, kIo when writing fails or something else is read back,
    // kCancelled.
    [[nodiscard]] Result<> erase(Bytes offset, Bytes size, EraseControl& control) override;

  private:
    MediaFile(std::string path, Bytes size, int fd);
    std::string path_;
    Bytes size_;
    int fd_;
};

}  // namespace memtide::emul
