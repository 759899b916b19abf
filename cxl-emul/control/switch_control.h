#pragma once

#include <functional>
#include <vector>

#include "common/http/message.h"
#include "common/http/router.h"
#include "cxl-emul/switch/switch.h"

namespace memtide::emul {

// The running switch of that name, not to be kept over an await: kNotFound when there is none, kConflict
// while it has no power.
using FindSwitch = std::function<Result<Switch*>(const SwitchId&)>;

// For programs whose switches live as long as they do.
FindSwitch find_among(std::vector<Switch*> switches);

// The part of a control interface that changes switches while they run: their virtual switches, and what
// hosts take of a device's bandwidth. docs/emulated-hosts.md lists the calls. What `find` needs outlives the
// router.
void add_switch_routes(http::Router& router, FindSwitch find);

// How the control interface says what came of a change.
http::Response answer_of(const Result<>& done);

}  // namespace memtide::emul
