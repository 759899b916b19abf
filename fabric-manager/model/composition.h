#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "fabric-manager/model/fabric.h"
#include "fabric-manager/model/placement_limits.h"
#include "fabric-manager/model/placement_policy.h"
#include "fabric-manager/model/time.h"

namespace memtide::fm {

// Where a part is in its life, and where its composition is (see state_of()). kResizing and kDegraded are
// states of compositions alone.
enum class CompositionState {
    kPending,
    kBinding,
    kOnlining,
    kOnline,
    kResizing,  // online, and parts are being added or given back
    kDegraded,  // online with less than was asked for: a part was lost and not replaced
    kDraining,
    kUnbinding,
    kErasing,
    kReleased,
    kFailed,
};
std::string_view to_string(CompositionState state);  // "Pending", as REST shows it
std::optional<CompositionState> parse_state(std::string_view text);
// Released or Failed: nothing will happen to it any more.
bool is_end(CompositionState state);
// Whether the life of a part may go from one to the other in one journal entry.
bool may_follow(CompositionState from, CompositionState to);

struct Reason {
    std::string code;  // "device-vanished", "bind-refused", "erase-failed", ...
    std::string detail;
    friend bool operator==(const Reason&, const Reason&) = default;
};

// One step of a part's life with its time; `name` is place, erase-before-bind, allocate, bind, online,
// drain, unbind, erase or exchange. A step that was repeated after a failure keeps its start.
struct Step {
    std::string name;
    std::uint32_t part = 0;
    Time started;
    std::optional<Time> ended;
    std::string detail;
    friend bool operator==(const Step&, const Step&) = default;
};

// Who keeps a memory block from going offline, as the agent found out.
struct Holder {
    std::string block;       // "memory32"
    std::optional<int> pid;  // nullopt: the kernel, or not known
    std::string command;
    Bytes bytes;
    friend bool operator==(const Holder&, const Holder&) = default;
};

struct LdSize {
    LdId ld;
    Bytes size;
    friend bool operator==(const LdSize&, const LdSize&) = default;
};

// A change of an MLD's allocations that a part needs before its LD exists with the right size.
struct Carve {
    std::vector<LdSize> before;  // to undo it
    std::vector<LdSize> after;   // the part's own LD is among them
    bool done = false;
    friend bool operator==(const Carve&, const Carve&) = default;
};

// One LD of a composition, bound at one vPPB of the host.
struct Part {
    std::uint32_t number = 0;  // within the composition; never used again
    // Parts with the same number are interleaved into one region, in the order of their part numbers.
    std::uint32_t region = 0;
    Bytes size;
    CompositionState state = CompositionState::kPending;
    std::optional<Reason> reason;  // why it fails or failed

    LdAddress memory;       // device and LD
    SerialNumber serial;    // of the LD; 0 until an LD that has yet to be carved was identified
    std::uint8_t port = 0;  // the device's physical port
    VppbAddress where;      // switch, vcs, vppb

    std::optional<int> node;  // NUMA node, while online
    std::optional<std::string> region_name;
    bool release_requested = false;
    bool forced = false;       // its release was forced
    bool replacement = false;  // stands in for a part that was lost
    std::optional<Carve> carve;
    std::optional<Time> drain_deadline;
    std::uint64_t offline_revision = 0;  // host revision that first asked for "offline"
    std::string boot_id;                 // the host's boot in which it went online
    std::uint32_t verified_pages = 0;    // that its host read back before it used it; 0: not verified

    // Follow from what is, and are not stored.
    std::string waiting_for;  // a sentence for people; empty when nothing is waited for
    std::vector<Holder> holders;

    friend bool operator==(const Part&, const Part&) = default;
};

// A shrink that gives a large part back for a smaller one: what goes stays online until all that stays is.
struct Exchange {
    Bytes size_before;                   // of the composition, when it is undone
    Time deadline;                       // then it is undone
    std::vector<std::uint32_t> leaving;  // parts that go at its end; they are as any other until then
    std::vector<std::uint32_t> coming;   // parts that go instead when it is undone
    friend bool operator==(const Exchange&, const Exchange&) = default;
};

// One grant of pooled CXL memory to one host, made of one part or several.
struct Composition {
    CompositionId id;
    std::uint64_t sequence = 0;  // order of creation; REST pages by it
    HostId host;
    Bytes size;  // as asked for
    PlacementPolicy placement;
    std::optional<std::string> tenant;
    std::map<std::string, std::string> labels;
    CompositionState state = CompositionState::kPending;  // always state_of() of the rest
    std::uint64_t revision = 0;  // counts journal entries; compare-and-swap key of the store
    std::optional<Reason>
        reason;               // why it failed, or what it lost and lacks still; nothing while it is Online
    bool failed = false;      // it gives everything back and ends as Failed
    std::vector<Part> parts;  // in order of their numbers; ended ones stay until the composition is over

    Time created;
    Time updated;
    std::optional<std::chrono::seconds> ttl;
    std::optional<Time> expires;
    bool was_online = false;  // once, with all that was asked for
    std::uint32_t next_part = 0;
    std::optional<Exchange> exchange;  // under way
    bool forced = false;               // its release was forced
    bool adopted = false;              // found bound on the switch, not asked for here
    bool release_requested = false;
    std::vector<std::string> undone;
    std::vector<Step> steps;
    double manager_overhead_ms = 0;
    Time phase_started;          // creation, release or reboot: overhead is counted from here
    double phase_waited_ms = 0;  // of that, spent waiting for the switch or the agent

    [[nodiscard]] const Part* part(std::uint32_t number) const;
    [[nodiscard]] Part* part(std::uint32_t number);

    friend bool operator==(const Composition&, const Composition&) = default;
};

// What follows from the states of the parts and from what is wanted.
CompositionState state_of(const Composition& composition);

// Sum of the parts that are to stay: neither ended, nor failing, nor on their way back.
Bytes lasting_size(const Composition& composition);
// Sum of all parts that have not ended: what it holds of the pool now.
Bytes held_size(const Composition& composition);
// Whether a part is to stay.
bool is_lasting(const Part& part);
// Whether no host ever had the part online.
bool is_new(const Part& part);
// Whether a part goes at the end of the exchange under way.
bool is_leaving(const Composition& composition, const Part& part);
// What the first part that waits waits for; empty when none does.
std::string waiting_for(const Composition& composition);

// What a client asks for; validated by the manager.
struct CompositionRequest {
    HostId host;
    Bytes size;
    PlacementPolicy placement;
    std::optional<std::string> tenant;
    std::map<std::string, std::string> labels;
    std::optional<std::chrono::seconds> ttl;
    // Which limits of the placement the client gave; for the others defaults count.
    PlacementLimits limits{};
    bool may_loosen = true;  // beyond the defaults
};

// What a client changes; absent members stay as they are.
struct CompositionChangeRequest {
    std::optional<Bytes> size;
    std::optional<std::chrono::seconds> ttl;  // counted from now; 0: no lease any more
    std::optional<std::map<std::string, std::string>> labels;
};

}  // namespace memtide::fm
