#pragma once

#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "common/base/error.h"
#include "cxl-emul/rack/control_client.h"

namespace memtide::emul {

// Exit code of `rack exec` when the command could not be run at all, so that it is not taken for the
// command's.
inline constexpr int kExecFailed = 125;

// Runs a command in a guest over `client` with this process's standard streams, and gives its exit code.
// Signals that end a terminal command go to the command; the third one ends this process.
int run_in_guest(ControlClient client, const boost::json::object& exec_request, bool with_input);

// Connects this terminal with the serial console of a host until Ctrl-] (or the end of standard input).
Result<> attach_console(ControlClient client, const std::string& host);

}  // namespace memtide::emul
