#include "common/daemon/daemon.h"

#include <csignal>
#include <string>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

namespace memtide::daemon {

boost::asio::awaitable<void> wait_for_shutdown_signal(Hangup hangup) {
    const auto executor = co_await boost::asio::this_coro::executor;
    // Gone with this coroutine, the set gives the signals their default action back: the second one ends the
    // process.
    boost::asio::signal_set signals(executor, SIGTERM, SIGINT);
    if (hangup == Hangup::kEnds) signals.add(SIGHUP);
    co_await signals.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
}

void notify_ready(std::string_view status) {
    const std::string message = "READY=1\nSTATUS=" + std::string(status);
    sd_notify(0, message.c_str());
}

void notify_stopping() { sd_notify(0, "STOPPING=1"); }

void ignore_sigpipe() { std::signal(SIGPIPE, SIG_IGN); }
void ignore_sigxfsz() { std::signal(SIGXFSZ, SIG_IGN); }

void raise_file_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace memtide::daemon
