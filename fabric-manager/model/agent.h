#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/fabric.h"

namespace memtide::fm {

// How agents make sure that memory was erased before their host uses it.
enum class ErasedPattern {
    kZeros,    // every byte is zero
    kUniform,  // every byte is the same, whatever it is
    kAny,      // an erase leaves anything: nothing can be verified
};
struct VerifyErased {
    std::uint32_t samples = 256;  // pages of 4 KiB that are read of each LD
    ErasedPattern pattern = ErasedPattern::kZeros;
    friend bool operator==(const VerifyErased&, const VerifyErased&) = default;
};

// What the agent of a host should make true for one region of a composition.
struct DesiredRegion {
    RegionId id;
    std::vector<SerialNumber> serials;  // of the LDs in it, in interleave order
    Bytes size;                         // of the whole region
    bool online = true;                 // false: take it offline and destroy the region
    bool force = false;
    std::optional<Time> drain_deadline;
    std::optional<VerifyErased> verify;  // filled in when it is told: no reason to tell anything again
    friend bool operator==(const DesiredRegion&, const DesiredRegion&) = default;
};

struct DesiredState {
    std::uint64_t revision = 0;
    HostId host;
    std::vector<DesiredRegion> regions;
};

enum class ObservedState { kAbsent, kFound, kOnline, kDraining, kOffline, kFailed };
std::string_view to_string(ObservedState state);  // "absent", as the agent writes it
std::optional<ObservedState> parse_observed_state(std::string_view text);

struct ObservedRegion {
    RegionId id;
    std::vector<SerialNumber> serials;
    ObservedState state = ObservedState::kAbsent;
    std::optional<int> node;
    std::optional<std::string> region;  // the kernel's name: "region0"
    Bytes online_bytes;
    std::uint32_t verified_pages = 0;      // that were read back and found erased; 0: not verified
    std::vector<SerialNumber> not_erased;  // of the LDs that hold what an erase does not leave
    std::optional<Reason> error;
    std::vector<Holder> holders;
};

// Everything an agent sees; replaces its previous report as a whole.
struct ObservedReport {
    std::string agent_version;
    std::string boot_id;
    std::uint64_t revision_seen = 0;
    std::vector<HostMemdev> memdevs;
    std::vector<HostWindow> windows;
    std::vector<ObservedRegion> regions;
    std::vector<Warning> warnings;
};

}  // namespace memtide::fm
