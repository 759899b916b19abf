#pragma once

#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/daemon/exit_code.h"

namespace memtide::daemon {

// Completes at the first SIGTERM or SIGINT; a second one ends the process at once. So does SIGHUP (the
// terminal that it was started from was closed), unless the program has another use for it.
enum class Hangup { kEnds, kIsTakenElsewhere };
boost::asio::awaitable<void> wait_for_shutdown_signal(Hangup hangup = Hangup::kEnds);

// sd_notify(3): harmless when not started by systemd.
void notify_ready(std::string_view status);
void notify_stopping();

// A peer that closes its end must be an error return, not a signal.
void ignore_sigpipe();

// A file size limit must be an error of the write, as a full disk is, and no reason to die.
void ignore_sigxfsz();

// Raises the soft limit of open files to the hard one: the usual 1024 is less than the connections a server
// allows. Harmless where nothing can be raised.
void raise_file_limit();

}  // namespace memtide::daemon
