#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace memtide {

// sysfs and procfs below a root folder ("/" in production, a temporary folder in tests). Paths are given
// without the root: "sys/devices/system/memory". Thread safe.
class Files {
  public:
    explicit Files(std::string root = "/");
    virtual ~Files() = default;
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;

    // The text without surrounding white space, at most 16 MiB of it. kNotFound, kPermission, kIo.
    [[nodiscard]] Result<std::string> read(const std::string& path) const;
    // As read(), as a number, decimal or 0x...; kProtocol when it is none.
    [[nodiscard]] Result<std::uint64_t> read_number(const std::string& path) const;
    // Calls `visit` with each line, without its end, of a text of any size: less memory than read(). Errors
    // as read(); lines that came before the error have been visited. A line of over 1 MiB is visited in
    // pieces.
    [[nodiscard]] Result<> for_each_line(const std::string& path,
                                         const std::function<void(std::string_view)>& visit) const;
    // One write(2), as sysfs wants it. kConflict for EBUSY and EAGAIN, kCancelled for EINTR (a signal ended a
    // call that blocks, see Interruption), kNotFound also for ENODEV and ENXIO, kInvalidArgument for EINVAL.
    virtual Result<> write(const std::string& path, std::string_view text);
    // Names in a folder, sorted; empty when there is none.
    [[nodiscard]] std::vector<std::string> list(const std::string& path) const;
    // Last component of what a symbolic link points to.
    [[nodiscard]] std::optional<std::string> link_target(const std::string& path) const;
    // All of what a symbolic link points to. kNotFound, kPermission, kIo.
    [[nodiscard]] Result<std::string> read_link(const std::string& path) const;
    [[nodiscard]] bool exists(const std::string& path) const;
    [[nodiscard]] std::string absolute(const std::string& path) const { return root_ + path; }

  private:
    std::string root_;  // ends with a slash
};

}  // namespace memtide
