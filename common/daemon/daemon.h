#pragma once

#include <string_view>

#include "common/daemon/exit_code.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace memtide::daemon {

// Completes at the first SIGTERM or SIGINT; a second one ends the process at once.
boost::asio::awaitable<void> wait_for_shutdown_signal();

// sd_notify(3): harmless when not started by systemd.
void notify_ready(std::string_view status);
void notify_stopping();

// A peer that closes its end must be an error return, not a signal.
void ignore_sigpipe();

}  // namespace memtide::daemon
