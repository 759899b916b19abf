// mbind(2) is called by its number: for one system call no further library is needed.
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libmemtide/src/heap.h"

namespace memtide::library {
namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20;
constexpr std::size_t kLeast = std::size_t{64} << 20;
constexpr int kPreferredMany = 5;  // MPOL_PREFERRED_MANY, from Linux 5.15 on

constexpr std::size_t kBits = CHAR_BIT * sizeof(unsigned long);
using NodeMask = std::array<unsigned long, 1024 / kBits>;  // MAX_NUMNODES is 1024 at most

int mbind_pages(char* begin, std::size_t size, int mode, const NodeMask& mask) {
    // The kernel takes one bit less than it is told.
    const long done = ::syscall(SYS_mbind, begin, size, mode, mask.data(), mask.size() * kBits + 1, 0);
    return done == 0 ? 0 : errno;
}

}  // namespace

Result<Region> Region::reserve(std::size_t wanted) {
    for (std::size_t size = std::max(wanted / kHuge * kHuge, kLeast); size >= kLeast;
         size = size / 2 / kHuge * kHuge) {
        // Nothing is charged for addresses that nobody writes to, unless the kernel counts strictly.
        void* const mapped = ::mmap(nullptr, size + kHuge, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) continue;
        // Huge pages fit from its beginning on.
        auto* const begin = static_cast<char*>(mapped);
        const std::size_t before = (kHuge - reinterpret_cast<std::uintptr_t>(begin) % kHuge) % kHuge;
        if (before > 0) ::munmap(begin, before);
        ::munmap(begin + before + size, kHuge - before);
        Region region;
        region.begin_ = begin + before;
        region.size_ = size;
        return region;
    }
    return fail(ErrorCode::kExhausted, "no addresses are left for a heap (ulimit -v, vm.overcommit_memory)");
}

Result<> Region::set_policy(Placement placement, const std::vector<int>& nodes) const {
    NodeMask mask{};
    NodeMask first{};
    for (const int node : nodes) {
        const auto bit = static_cast<std::size_t>(node);
        if (bit >= mask.size() * kBits) continue;
        mask.at(bit / kBits) |= 1UL << bit % kBits;
        if (node == nodes.front()) first = mask;
    }
    int error = mbind_pages(begin_, size_, placement == Placement::kBound ? MPOL_BIND : kPreferredMany, mask);
    if (error == EINVAL && placement == Placement::kPreferred)
        error = mbind_pages(begin_, size_, MPOL_PREFERRED, first);
    if (error == 0 || error == ENOSYS) return {};  // without NUMA all memory is that of the one node
    if (error == EINVAL)
        return fail(ErrorCode::kUnavailable,
                    fmt::format("none of the nodes {} has memory that this process may use now",
                                fmt::join(nodes, ",")));
    return fail_errno("mbind to nodes", fmt::format("{}", fmt::join(nodes, ",")), error);
}

}  // namespace memtide::library
