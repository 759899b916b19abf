#pragma once

#include "common/http/router.h"
#include "cxl-emul/faults/fault_board.h"
#include "cxl-emul/hosts/fleet.h"

namespace memtide::emul {

// The control interface of a fleet over HTTP, for people with curl and for tests: what it does, what it has
// seen go wrong, and faults to begin and to end. docs/emulated-hosts.md lists the calls, docs/faults.md those
// of the board. Both outlive the router.
void add_control_routes(http::Router& router, Fleet& fleet, FaultBoard& board);

}  // namespace memtide::emul
