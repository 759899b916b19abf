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
#include "fabric-manager/model/time.h"

namespace memtide::fm {

enum class CompositionState {
    kPending,
    kBinding,
    kOnlining,
    kOnline,
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
// Whether the life of a composition may go from one to the other in one journal entry.
bool may_follow(CompositionState from, CompositionState to);

struct Reason {
    std::string code;  // "device-vanished", "bind-refused", "erase-failed", ...
    std::string detail;
    friend bool operator==(const Reason&, const Reason&) = default;
};

// One step of a composition's life with its time; `name` is place, erase-before-bind, allocate, bind, online,
// drain, unbind or erase. A step that was repeated after a failure keeps its start.
struct Step {
    std::string name;
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

// A change of an MLD's allocations that a composition needs before its LD exists with the right size.
struct Carve {
    std::vector<LdSize> before;  // to undo it
    std::vector<LdSize> after;   // the composition's own LD is among them
    bool done = false;
    friend bool operator==(const Carve&, const Carve&) = default;
};

// One grant of pooled CXL memory to one host.
struct Composition {
    CompositionId id;
    std::uint64_t sequence = 0;  // order of creation; REST pages by it
    HostId host;
    Bytes size;
    std::optional<std::string> tenant;
    std::map<std::string, std::string> labels;
    CompositionState state = CompositionState::kPending;
    std::uint64_t revision = 0;  // counts journal entries; compare-and-swap key of the store
    std::optional<Reason> reason;

    LdAddress memory;       // device and LD
    SerialNumber serial;    // of the LD; 0 until an LD that has yet to be carved was identified
    std::uint8_t port = 0;  // the device's physical port
    VppbAddress where;      // switch, vcs, vppb

    std::optional<int> node;  // NUMA node, while online
    std::optional<std::string> region;
    Time created;
    Time updated;
    std::optional<std::chrono::seconds> ttl;
    std::optional<Time> expires;
    bool forced = false;   // its release was forced
    bool adopted = false;  // found bound on the switch, not asked for here
    bool release_requested = false;
    std::string waiting_for;  // a sentence for people; empty when nothing is waited for
    std::vector<Holder> holders;
    std::vector<std::string> undone;
    std::vector<Step> steps;
    double manager_overhead_ms = 0;

    // What the engine remembers about the job.
    std::optional<Carve> carve;
    std::optional<Time> drain_deadline;
    std::uint64_t offline_revision = 0;  // host revision that first asked for "offline"
    std::string boot_id;                 // the host's boot in which it went online
    bool erased = false;                 // the erase after unbind has succeeded
    Time phase_started;                  // creation, release or reboot: overhead is counted from here
    double phase_waited_ms = 0;          // of that, spent waiting for the switch or the agent

    friend bool operator==(const Composition&, const Composition&) = default;
};

// What a client asks for; validated by the manager.
struct CompositionRequest {
    HostId host;
    Bytes size;
    std::optional<std::string> tenant;
    std::map<std::string, std::string> labels;
    std::optional<std::chrono::seconds> ttl;
};

}  // namespace memtide::fm
