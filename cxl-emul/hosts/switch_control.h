#pragma once

#include "common/http/router.h"
#include "cxl-emul/hosts/fleet.h"

namespace memtide::emul {

// The part of a fleet's control interface that changes switches while they run: their virtual switches, and
// what hosts take of a device's bandwidth. docs/emulated-hosts.md lists the calls. The fleet outlives the
// router.
void add_switch_routes(http::Router& router, Fleet& fleet);

// How the control interface says what came of a change.
http::Response answer_of(const Result<>& done);

}  // namespace memtide::emul
