#include <fmt/format.h>

#include "tiering-agent/policy/targets.h"

namespace memtide::agent {

std::optional<Stay> why_it_stays(const Vma& vma, const TieringTarget& target) {
    if (vma.kind == VmaKind::kSpecial) return Stay{StayReason::kSpecial};
    if (vma.kind == VmaKind::kDevice || (vma.flags && vma.flags->device_memory))
        return Stay{StayReason::kDevice};
    if (vma.flags && vma.flags->hugetlb) return Stay{StayReason::kHugetlb};
    if (vma.flags && vma.flags->locked) return Stay{StayReason::kLocked};
    if (vma.policy && *vma.policy != "default") return Stay{StayReason::kOwnPolicy};
    if (vma.kind == VmaKind::kFile && !(vma.is_private && vma.writable)) return Stay{StayReason::kFile};
    for (std::size_t i = 0; i < target.exclude.size(); ++i)
        if (target.exclude[i].matches(vma)) return Stay{StayReason::kExcluded, i};
    if (!vma.flags || !vma.policy) return Stay{StayReason::kNotLookedAt};
    return std::nullopt;
}

std::string explain(const Stay& stay, const Vma& vma, const TieringTarget& target) {
    switch (stay.reason) {
        case StayReason::kSpecial:
            return "the kernel's own mapping";
        case StayReason::kDevice:
            return "memory of a device";
        case StayReason::kHugetlb:
            return "pages of hugetlbfs";
        case StayReason::kLocked:
            return "locked by mlock";
        case StayReason::kOwnPolicy:
            return fmt::format("has a memory policy of its own ({})", vma.policy.value_or("?"));
        case StayReason::kFile:
            return vma.is_private ? "pages of a file that are only read, and shared with all who map it"
                                  : "a shared mapping of a file";
        case StayReason::kExcluded:
            return stay.exclusion < target.exclude.size()
                       ? fmt::format("target \"{}\" excludes it ({})", target.name,
                                     to_string(target.exclude[stay.exclusion]))
                       : fmt::format("target \"{}\" excludes it", target.name);
        case StayReason::kNotLookedAt:
            return "whether it is locked or has a memory policy is not known yet";
    }
    return "?";
}

}  // namespace memtide::agent
