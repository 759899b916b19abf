#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/sysfs/files.h"

// What the kernel says of the NUMA nodes of this machine.
namespace memtide::agent {

// /sys/devices/system/node/nodeN/accessC/initiators, from HMAT or CDAT
// (Documentation/admin-guide/mm/numaperf.rst): as seen from the nearest initiator. 0: not said.
struct NodePerformance {
    unsigned read_latency_ns = 0;
    unsigned write_latency_ns = 0;
    unsigned read_bandwidth_mib = 0;  // per second
    unsigned write_bandwidth_mib = 0;

    // The mean of both directions, or the one that is known; 0: neither is.
    [[nodiscard]] unsigned latency_ns() const;
    friend bool operator==(const NodePerformance&, const NodePerformance&) = default;
};

struct NodeFacts {
    int node = 0;
    bool has_cpus = false;
    Bytes capacity{};  // 0: a node of CPUs or devices alone
    Bytes free{};
    NodePerformance performance{};
    std::optional<int> kernel_tier{};  // N of memory_tierN: lower is faster
    std::map<int, int> distances{};    // to each node that is online; 10 is the node itself

    friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// "0-2,5" as sysfs and cgroups write lists of nodes and CPUs; kInvalidArgument for anything else and for
// numbers above 65535. An empty text is an empty list. Pure.
Result<std::set<int>> parse_number_list(std::string_view text);

// All nodes, by number. Nodes that go away meanwhile are left out; what cannot be read of one that stays is
// as if not said. Empty on a kernel without NUMA. Reads, and remembers nothing: some ten small files a node.
// Thread safe.
std::vector<NodeFacts> read_nodes(const Files& files);

}  // namespace memtide::agent
