#pragma once

#include <cstdint>
#include <variant>

#include "common/base/error.h"
#include "cxl-emul/switch/model.h"

// Changes to the virtual switches of a running switch, as its vendor's own tools make them: the FM API has
// none for it. A manager sees them when it reads the switch the next time.
namespace memtide::emul {

struct AddVcs {
    VcsConfig vcs;
};
struct RemoveVcs {
    std::uint8_t id = 0;
};
// A disabled virtual switch is listed, and nothing can be bound to it.
struct EnableVcs {
    std::uint8_t id = 0;
    bool enabled = true;
};
// vPPBs are added or taken away at the end.
struct ResizeVcs {
    std::uint8_t id = 0;
    std::uint8_t vppbs = 0;
};
using VcsChange = std::variant<AddVcs, RemoveVcs, EnableVcs, ResizeVcs>;

// Makes the change or leaves everything as it is: kNotFound when there is no such virtual switch,
// kAlreadyExists when its id or its upstream port is taken, kInvalidArgument for a port that has no host and
// for a virtual switch without vPPBs, kConflict when a vPPB that would go, or be disabled, is not free.
Result<> reconfigure(SwitchModel& model, const VcsChange& change);

}  // namespace memtide::emul
