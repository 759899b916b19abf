#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/processes.h"

// Where pages go that not even the slowest tier should keep.
namespace memtide::agent {

struct FarRoom {
    Bytes capacity{};
    Bytes free{};
    // Of what it holds, the part that stays in the memory of this host, compressed (zram, zswap): `kept`
    // bytes of memory take `taken` ones.
    Bytes kept{};
    Bytes taken{};

    // What a byte that went there saves: 1 on a disk or another host, 0 where nothing shrinks.
    [[nodiscard]] double gain() const;
    friend bool operator==(const FarRoom&, const FarRoom&) = default;
};

// A page, or a huge page as a whole; page numbers as in HeatMap.
struct FarUnit {
    std::uint64_t page = 0;
    std::uint32_t pages = 1;

    friend bool operator==(const FarUnit&, const FarUnit&) = default;
};

// One far tier. The process whose pages these are needs to know nothing of it: it faults, and gets back what
// it had. What goes there is kept until it is asked for or given up by its process, whether this program
// lives or not. Not thread safe.
class FarTier {
  public:
    enum class Where : std::uint8_t { kHere, kFar, kNowhere };
    struct Outcome {
        std::uint32_t taken = 0;  // pages of the unit
        int error = 0;            // why not all of them: EINVAL: locked; EBUSY: in use by others, or no room

        friend bool operator==(const Outcome&, const Outcome&) = default;
    };

    virtual ~FarTier() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    // kUnavailable when there is none, with what to do about it.
    [[nodiscard]] virtual Result<FarRoom> room() const = 0;
    // Sends these pages there, which are private memory of the process, by ascending address; one outcome for
    // each. Blocks for some microseconds a page, and for the device where its queue is full. kNotFound when
    // the process is gone, also when another has its pid; kPermission; kUnavailable on a kernel that cannot.
    // Nothing was sent then.
    virtual Result<std::vector<Outcome>> page_out(ProcessId process, std::span<const FarUnit> units) = 0;
    // Where pages of it are now, by ascending page number. Errors as of page_out().
    virtual Result<std::vector<Where>> find(ProcessId process, std::span<const std::uint64_t> pages) = 0;
};

// The kernel's swap, on whatever devices it has, with zswap before them or not: process_madvise(2) with
// MADV_PAGEOUT, from Linux 5.10 on. It obeys memory.swap.max of cgroups; what the kernel does not take (pages
// that others map, too) stays where it is. `files` outlives it.
std::unique_ptr<FarTier> make_swap_tier(const Files& files);

}  // namespace memtide::agent
