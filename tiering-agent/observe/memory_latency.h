#pragma once

#include <memory>
#include <optional>
#include <set>

namespace memtide::agent {

// How long a load from the memory of a node takes now, with whatever else it has to do. Not thread safe.
class MemoryLatency {
  public:
    virtual ~MemoryLatency() = default;
    // Of one load that nothing else can be done before, from a processor that this thread may run on; ns.
    // Nothing where it cannot be measured: no such node, no room on it, or a processor whose caches cannot be
    // told to forget.
    virtual std::optional<double> measure(int node) = 0;
    // Of other nodes no memory is held any longer: they may go.
    virtual void keep_only(const std::set<int>& nodes) = 0;
};

// Loads from some 256 KiB of its own on each node (mbind(2)), one after the other and each from an address
// that the one before has brought, of lines that were flushed from all caches before. Some 50 us each time,
// of which the shortest of a few counts.
std::unique_ptr<MemoryLatency> make_memory_latency();

}  // namespace memtide::agent
