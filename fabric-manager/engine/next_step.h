#pragma once

#include <optional>
#include <string>

#include "fabric-manager/model/agent.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/time.h"

namespace memtide::fm {

// What the switch says about one part.
enum class VppbView {
    kUnknown,  // the VCS or vPPB is not there
    kFree,     // bound to nothing
    kOurs,     // bound to the part's LD
    kOther,    // bound to something else
    kBusy,     // a bind or unbind is going on
};
struct SwitchView {
    bool known = false;   // read since the last doubt; nothing below counts otherwise
    std::string trouble;  // why not
    bool device_present = false;
    std::string moved_to;        // where the device is instead, when a switch shows it elsewhere
    bool gone_for_long = false;  // what is missing was missing some time ago as well
    Bytes ld_size;
    bool ld_clean = false;
    bool dynamic = false;       // the LD has what its host accepts of a dynamic capacity device
    bool offered = false;       // and has yet to accept some of it
    bool ld_elsewhere = false;  // the LD is bound at another vPPB
    VppbView vppb = VppbView::kUnknown;
};

// What its composition says about it.
struct CompositionView {
    HostId host;
    bool expendable = false;  // comes in exchange for a part that is online
};

// What the host's agent says about it; the defaults mean that it has not said anything to this process.
struct AgentView {
    bool reported = false;  // about the host at all
    std::string boot_id;
    std::uint64_t revision_seen = 0;
    std::optional<ObservedRegion> region;  // the part's
    // What the agent was asked for.
    bool asked_online = false;  // it was told to bring the region online
    Bytes region_size;
};

enum class ActionKind {
    kNothing,          // all is as it should be, or it has ended
    kAwaitSwitch,      // nothing can be done until the switch answers (again)
    kAwaitBackground,  // the switch is busy with our vPPB: follow that, then look again
    kEraseBeforeBind,  // sanitize: the LD is not known to be clean
    kAllocate,         // Set LD Allocations as the carve says
    kBind,             // journal Binding, then Bind vPPB
    kEnterOnlining,    // it is bound
    kAwaitAgentOnline,
    kOffer,            // offer its host dynamic capacity again: it did not take it, or somebody withdrew it
    kSeeAccepted,      // the agent says that it has it online: see that its device says so, too
    kBecomeOnline,     // the agent says so
    kNotErased,        // the agent says that it holds what an erase does not leave: keep it out of the pool
    kOnlineRefused,    // the agent says that it cannot, and there is other memory that does as well
    kReenterOnlining,  // the host rebooted or lost the memory: the agent has to online it again
    kStartDrain,       // journal Draining: the agent is asked to take it offline
    kAwaitAgentOffline,
    kUnbind,        // journal Unbinding, then Unbind vPPB
    kEnterErasing,  // it is unbound
    kErase,         // sanitize
    kUndoAllocate,  // Set LD Allocations back
    kRelease,       // journal Released without any effect: no host ever had it
    kFail,          // journal the reason; Failed when nothing is left to undo
};

struct Action {
    ActionKind kind = ActionKind::kNothing;
    std::optional<Reason> reason;  // of kFail and kOnlineRefused
    std::string waiting_for;       // of the kAwait... kinds, a sentence for people
};

// Whether the switch does not show the memory where it should be: under a host, or on its way to be erased.
bool is_missing(const Part& part, const SwitchView& fabric);

// The one next step of a part of a composition, from what is wanted and what is true. Pure; every step
// it asks for may be repeated, so that asking again after a crash is right.
Action next_step(const CompositionView& composition, const Part& part, const SwitchView& fabric,
                 const AgentView& agent);

}  // namespace memtide::fm
