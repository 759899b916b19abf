#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "tiering-agent/hotplug/interleave.h"
#include "tiering-agent/hotplug/state.h"

// Reading memory back before its first use, so that "erased" is seen and not only said by the device.
namespace memtide::agent {

inline constexpr std::uint64_t kSampledPage = 4096;  // bytes

// Offsets of pages to read: the first, the last, and one at random in each of equal stretches between them,
// so that nothing longer than two stretches is missed whatever the seed. In ascending order, each once; all
// pages when there are no more than `count`. Pure.
std::vector<std::uint64_t> sample_offsets(Bytes size, std::uint64_t count, std::uint64_t seed);

struct ReadBackJob {
    std::string device;  // the dax device's character device, or a file
    Bytes size;          // of the region
    Interleave interleave;
    ErasedPattern pattern = ErasedPattern::kZeros;
    std::vector<std::uint64_t> offsets;
};

// Reads the pages, and looks whether they hold the pattern. Stops as soon as every target is known to be
// dirty. Blocks; `cancelled` is asked about every 50 ms.
//
// The pages are mapped and read by a child process alone. Reading poisoned memory ends the process that does
// it with SIGBUS, and the kernel sends that signal to whoever else has the page of a dax device mapped; so
// the agent itself never maps it, and a child that ends in this way is an answer: the page is unreadable. The
// child dies with the thread that made it, so that a killed agent leaves nobody holding the device.
//
// kNotFound, kPermission, kIo when the device cannot be opened or mapped, kCancelled.
Result<ReadBack> read_back(const ReadBackJob& job, const std::function<bool()>& cancelled);

// What a record's findings mean: the memdevs that are dirty, and a sentence that names the first of them.
std::vector<SerialNumber> dirty_memdevs(const RegionRecord& record);
std::string describe(const RegionRecord& record);

}  // namespace memtide::agent
