#pragma once

#include <cstdint>

#include <linux/ioctl.h>

// Of linux/userfaultfd.h from Linux 7.3 on (Documentation/admin-guide/mm/userfaultfd.rst, "Read-Write
// Protection"); the headers of Debian 12 and 13 are older. No more than a preloaded library can include.
namespace memtide::userfault_abi {

struct Api {
    std::uint64_t api = 0xAA;    // UFFD_API
    std::uint64_t features = 0;  // wanted; answered: those that there are
    std::uint64_t ioctls = 0;    // answered
};
struct Range {
    std::uint64_t start = 0;
    std::uint64_t length = 0;
};
struct Register {
    Range range;
    std::uint64_t mode = 0;
    std::uint64_t ioctls = 0;  // answered
};
struct Protect {
    Range range;
    std::uint64_t mode = 0;
};

inline constexpr unsigned long kApi = _IOWR(0xAA, 0x3F, Api);                   // UFFDIO_API
inline constexpr unsigned long kRegister = _IOWR(0xAA, 0x00, Register);         // UFFDIO_REGISTER
inline constexpr unsigned long kUnregister = _IOR(0xAA, 0x01, Range);           // UFFDIO_UNREGISTER
inline constexpr unsigned long kReadWriteProtect = _IOWR(0xAA, 0x09, Protect);  // UFFDIO_RWPROTECT

// UFFD_FEATURE_RWP, UFFD_FEATURE_RWP_ASYNC: whoever touches a protected page goes on at once.
inline constexpr std::uint64_t kFeatures = 1 << 17 | 1 << 18;
inline constexpr std::uint64_t kRegisterReadWrite = 1 << 3;  // UFFDIO_REGISTER_MODE_RWP
inline constexpr std::uint64_t kProtect = 1;                 // UFFDIO_RWPROTECT_MODE_RWP
// Needs no privilege. What the kernel itself touches is seen all the same: with RWP_ASYNC nobody has to be
// asked.
inline constexpr int kUserModeOnly = 1;  // UFFD_USER_MODE_ONLY

}  // namespace memtide::userfault_abi
