#include "tiering-agent/balance/rivals.h"

#include <fmt/format.h>

namespace memtide::agent {

// Documentation/admin-guide/sysctl/kernel.rst (numa_balancing),
// Documentation/ABI/testing/sysfs-kernel-mm-numa, Documentation/admin-guide/mm/damon/usage.rst.
std::vector<std::string> find_rivals(const Files& files) {
    std::vector<std::string> rivals;
    if (const auto balancing = files.read("proc/sys/kernel/numa_balancing"); balancing && *balancing != "0")
        rivals.push_back(fmt::format(
            "the kernel's NUMA balancing is on ({}) and moves pages, too: sysctl kernel.numa_balancing=0",
            *balancing));
    if (const auto demotion = files.read("sys/kernel/mm/numa/demotion_enabled");
        demotion && (*demotion == "true" || *demotion == "1"))
        rivals.emplace_back(
            "the kernel demotes pages when it reclaims: echo false > /sys/kernel/mm/numa/demotion_enabled");
    for (const std::string& daemon : files.list("sys/kernel/mm/damon/admin/kdamonds")) {
        const auto state = files.read("sys/kernel/mm/damon/admin/kdamonds/" + daemon + "/state");
        if (state && *state == "on")
            rivals.push_back(fmt::format(
                "DAMON runs (kdamond {}): what it does with its schemes is not known here", daemon));
    }
    return rivals;
}

}  // namespace memtide::agent
