#pragma once

#include <cstdint>
#include <utility>

#include "common/base/error.h"

namespace memtide {

// A userfaultfd(2) by which pages of one process can be protected from reads and writes, so that the kernel
// notes the first touch of each and lets it happen (UFFD_FEATURE_RWP_ASYNC): nobody ever waits for whoever
// holds this. Linux 7.3 with CONFIG_USERFAULTFD_RWP, x86-64 and arm64. Not thread safe.
class Userfault {
  public:
    // For the memory of this process. kUnavailable on a kernel without; kPermission where it is forbidden.
    static Result<Userfault> open();
    // One that somebody else has opened; takes the descriptor. kInvalidArgument when it is no userfaultfd of
    // this kind: one that would make who touches a page wait.
    static Result<Userfault> adopt(int descriptor);
    ~Userfault();
    Userfault(Userfault&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Userfault& operator=(Userfault&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }

    // Addresses in bytes, multiples of 4096. What is protected stays so until it is touched, wherever its
    // pages are moved to. Errors of all: kNotFound when the process is gone, or runs another program.
    //
    // From now on pages of these mappings can be protected; again for some is no mistake. kConflict: another
    // userfaultfd has them; kInvalidArgument: there are others than anonymous and shared memory among them,
    // or such that nobody may touch.
    Result<> cover(std::uint64_t begin, std::uint64_t end);
    // kConflict: not all mappings are covered; some may be protected then.
    Result<> protect(std::uint64_t begin, std::uint64_t end);
    Result<> unprotect(std::uint64_t begin, std::uint64_t end);
    // Unprotects, too.
    Result<> uncover(std::uint64_t begin, std::uint64_t end);

  private:
    explicit Userfault(int descriptor) : descriptor_(descriptor) {}
    Result<> set_protection(std::uint64_t begin, std::uint64_t end, std::uint64_t mode);
    int descriptor_;
};

}  // namespace memtide
