#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"

// Plain data of the hot-plug part: what is wanted, what the system shows, what is reported. No I/O.
namespace memtide::agent {

using WallTime = std::chrono::system_clock::time_point;

// --- What the fabric manager wants ---

enum class Want { kOnline, kOffline };

// What the erase of a medium leaves in every byte: zero, or one and the same value whatever it is.
enum class ErasedPattern { kZeros, kUniform };

// How to make sure, before memory is used for the first time, that nothing of its previous owner is left.
struct Verification {
    std::uint32_t samples = 0;  // pages of 4 KiB that are read, of each memdev
    ErasedPattern pattern = ErasedPattern::kZeros;

    friend bool operator==(const Verification&, const Verification&) = default;
};

struct DesiredRegion {
    RegionId id{};
    std::vector<SerialNumber> serials{};  // of the memdevs that carry it; several are interleaved
    Bytes size{};                         // of all of them together
    Want want = Want::kOnline;
    bool force = false;                        // the manager will not wait: no gentle draining
    std::optional<WallTime> drain_deadline{};  // after it, the release counts as failed but is still tried
    std::optional<Verification> verify{};      // only before this composition has used it

    friend bool operator==(const DesiredRegion&, const DesiredRegion&) = default;
};

struct Desired {
    std::uint64_t revision = 0;
    std::vector<DesiredRegion> regions{};  // ids and serials are unique

    friend bool operator==(const Desired&, const Desired&) = default;
};

// --- What the system shows ---

// Host physical addresses, in bytes.
struct AddressRange {
    std::uint64_t start = 0;
    std::uint64_t size = 0;

    [[nodiscard]] std::uint64_t end() const { return start + size; }
    [[nodiscard]] bool overlaps(AddressRange other) const {
        return size != 0 && other.size != 0 && start < other.end() && other.start < end();
    }
    friend bool operator==(AddressRange, AddressRange) = default;
};

// A root decoder (CXL fixed memory window) below which a memdev sits.
struct Window {
    std::string name{};  // "decoder0.0"
    Bytes size{};
    Bytes largest_free{};
    unsigned ways = 1;           // host bridges it interleaves over
    unsigned granularity = 256;  // bytes that go to one of them before the next
    unsigned position = 0;       // of the memdev's host bridge among them

    friend bool operator==(const Window&, const Window&) = default;
};

struct Memdev {
    std::string name{};  // "mem0"
    SerialNumber serial{};
    Bytes ram_size{};
    bool has_endpoint = false;          // its CXL endpoint port exists: regions can be made
    std::string free_decoder{};         // first endpoint decoder without a region, "decoder3.0"
    std::vector<Window> ram_windows{};  // volatile-capable windows that reach it

    friend bool operator==(const Memdev&, const Memdev&) = default;
};

enum class BlockState { kOffline, kOnline, kGoingOffline };

// One unit of memory hot-plug: /sys/devices/system/memory/memoryN.
struct MemoryBlock {
    std::uint64_t index = 0;
    BlockState state = BlockState::kOffline;
    bool movable = false;  // online, and in zone Movable
    std::optional<int> node{};

    friend bool operator==(const MemoryBlock&, const MemoryBlock&) = default;
};

struct DaxDevice {
    std::string name{};    // "dax0.0"
    std::string driver{};  // "kmem" (system RAM), "device_dax", or empty
    AddressRange range{};

    friend bool operator==(const DaxDevice&, const DaxDevice&) = default;
};

// An endpoint decoder that carries a region; `memdev` is empty when that went away.
struct Target {
    std::string decoder{};
    std::string memdev{};

    friend bool operator==(const Target&, const Target&) = default;
};

struct Region {
    std::string name{};  // "region0"
    std::string window{};
    AddressRange range{};  // size 0 until it is configured
    bool committed = false;
    bool enabled = false;  // the cxl_region driver is bound
    std::vector<Target> targets{};
    // Only for regions of memdevs in the desired list, or made by this agent:
    std::vector<DaxDevice> dax{};
    std::vector<MemoryBlock> blocks{};  // those that exist of the whole blocks inside range

    friend bool operator==(const Region&, const Region&) = default;
};

// What reading a region back has shown, before anything used it.
struct ReadBack {
    std::uint32_t pages = 0;   // that were read; 0: it was not read back
    std::uint32_t dirty = 0;   // bit i: the memdev i, in the order of the targets, was not erased
    std::uint64_t offset = 0;  // in the region, of the first byte or page that tells
    bool unreadable = false;   // that page cannot be read (poison): what it holds is not known

    [[nodiscard]] bool is_clean() const { return pages != 0 && dirty == 0; }
    friend bool operator==(const ReadBack&, const ReadBack&) = default;
};

// A region that this agent made, remembered on tmpfs from just before it is made until it is gone: this is
// how it is recognised while no memdev is attached to it (yet, or any more).
struct RegionRecord {
    std::string region{};
    std::vector<SerialNumber> serials{};  // in the order of its targets
    AddressRange range{};                 // size 0 until it is known
    ReadBack read_back{};
    std::vector<MemoryBlock> blocks{};  // filled by looking: what is left of it when the region is gone

    friend bool operator==(const RegionRecord&, const RegionRecord&) = default;
};

struct Seen {
    std::vector<Memdev> memdevs{};
    std::vector<Region> regions{};
    std::vector<RegionRecord> records{};
    std::vector<RegionId>
        used{};  // regions of compositions that this host may have written to since its start
    Bytes block_size{};
    std::string
        auto_online{};  // what the kernel does with new blocks: "offline", "online", "online_movable", ...

    friend bool operator==(const Seen&, const Seen&) = default;
};

// --- What is reported ---

// `code` is stable and for programs (docs/agent.md lists them), `detail` is for people.
struct Finding {
    std::string code{};
    std::string detail{};

    friend bool operator==(const Finding&, const Finding&) = default;
};

// Who keeps a memory block from going offline. No pid: the kernel itself, or the page cache.
struct Holder {
    std::string block{};  // "memory32"; a device-dax mapping names the device, "dax0.0"
    std::optional<int> pid{};
    std::string command{};
    Bytes bytes{};

    friend bool operator==(const Holder&, const Holder&) = default;
};

// kAbsent: no memdev with that serial. kOnline: every block verified online in zone Movable.
// kOffline: the memdev is there and nothing uses it; safe to unbind.
enum class RegionStatus { kAbsent, kFound, kOnline, kDraining, kOffline, kFailed };
std::string_view to_string(RegionStatus status);

struct ObservedRegion {
    RegionId id{};
    std::vector<SerialNumber> serials{};
    RegionStatus status = RegionStatus::kAbsent;
    std::optional<int> node{};  // as the memory blocks show it
    std::optional<std::string> region{};
    Bytes online{};
    std::uint32_t verified_pages = 0;        // read back before use and found erased; 0: not verified
    std::vector<SerialNumber> not_erased{};  // of the memdevs that hold what an erase does not leave
    std::optional<Finding> error{};
    std::vector<Holder> holders{};

    friend bool operator==(const ObservedRegion&, const ObservedRegion&) = default;
};

struct Observed {
    std::uint64_t revision_seen = 0;
    std::vector<Memdev> memdevs{};
    std::vector<ObservedRegion> regions{};
    std::vector<Finding> warnings{};

    friend bool operator==(const Observed&, const Observed&) = default;
};

// "memory32, memory33": names of blocks for messages, at most a dozen, then "and N more".
std::string block_names(const std::vector<std::uint64_t>& indexes);

// The whole memory blocks inside a range: first index and count. The kernel trims what is not aligned.
struct BlockSpan {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
};
BlockSpan whole_blocks(AddressRange range, Bytes block_size);

}  // namespace memtide::agent
