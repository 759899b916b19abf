#include "tiering-agent/observe/mapping_kind.h"

namespace memtide::agent {
namespace {

VmaKind kind_in_brackets(std::string_view name) {
    if (name == "[heap]") return VmaKind::kHeap;
    if (name == "[stack]" || name.starts_with("[stack:")) return VmaKind::kStack;
    if (name.starts_with("[anon:")) return VmaKind::kAnonymous;  // PR_SET_VMA_ANON_NAME
    if (name.starts_with("[anon_shmem:")) return VmaKind::kShared;
    return VmaKind::kSpecial;
}

// "/dev/zero" is what anonymous shared memory looks like, and deleted then; mapped privately it is anonymous.
VmaKind kind_below_dev(std::string_view name, bool is_private, bool is_deleted) {
    if (name.starts_with("/dev/shm/")) return VmaKind::kShared;
    if (name.starts_with("/dev/hugepages/")) return VmaKind::kShared;
    if (name == "/dev/zero") return is_private && !is_deleted ? VmaKind::kAnonymous : VmaKind::kShared;
    return VmaKind::kDevice;
}

}  // namespace

VmaKind kind_of_mapping(std::string_view name, bool is_private, bool is_deleted) {
    if (name.empty()) return VmaKind::kAnonymous;
    if (name.front() == '[') return kind_in_brackets(name);
    if (name.starts_with("/dev/")) return kind_below_dev(name, is_private, is_deleted);
    if (name.starts_with("/memfd:") || name.starts_with("/SYSV")) return VmaKind::kShared;
    if (is_hugetlb_name(name)) return is_private ? VmaKind::kAnonymous : VmaKind::kShared;
    if (name.starts_with("/[aio]")) return VmaKind::kSpecial;
    // Buffers of graphics drivers.
    if (name.starts_with("/drm mm object") || name.starts_with("/i915") || name.starts_with("/dmabuf:"))
        return VmaKind::kDevice;
    if (name.starts_with("/sys/") || name.starts_with("/proc/")) return VmaKind::kDevice;  // PCI resources
    if (name.front() == '/') return VmaKind::kFile;
    return VmaKind::kSpecial;  // "anon_inode:[io_uring]", "socket:[4711]"
}

bool is_hugetlb_name(std::string_view name) {
    return name.starts_with("/anon_hugepage") || name.starts_with("/dev/hugepages/");
}

}  // namespace memtide::agent
