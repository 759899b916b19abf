#include "fabric-manager/app/upkeep.h"

#include <chrono>
#include <csignal>
#include <optional>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "common/base/no_throw.h"
#include "common/log/log.h"

namespace memtide::fm {
namespace {

namespace asio = boost::asio;

void look_at_certificates(Gate& gate, tls::ServerContext* tls) {
    if (tls == nullptr) return;
    const auto reloaded = tls->reload_if_changed();
    if (!reloaded) {
        gate.certificates_were_read(reloaded.error());
    } else if (*reloaded) {
        log::info("certificates were read again", {{"certificate", tls->files().certificate}});
        gate.certificates_were_read(std::nullopt);
    }
}

asio::awaitable<void> tick(Gate& gate, std::shared_ptr<tls::ServerContext> tls) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        timer.expires_after(std::chrono::seconds(1));
        const auto [error] = co_await timer.async_wait(kNoThrow);
        if (error) co_return;
        look_at_certificates(gate, tls.get());
        gate.tick();
    }
}

asio::awaitable<void> on_hangup(Gate& gate, std::shared_ptr<tls::ServerContext> tls) {
    asio::signal_set signals(co_await asio::this_coro::executor, SIGHUP);
    for (;;) {
        const auto [error, number] = co_await signals.async_wait(kNoThrow);
        if (error) co_return;
        log::info("SIGHUP: reading certificates and tokens again");
        if (tls) {
            const auto loaded = tls->reload();
            gate.certificates_were_read(loaded ? std::nullopt : std::optional(loaded.error()));
        }
        if (const auto opened = gate.reopen_audit(); !opened)
            log::error("the audit log cannot be opened again", {{"error", opened.error()}});
        gate.tick();
    }
}

}  // namespace

asio::awaitable<void> keep_up(Gate& gate, std::shared_ptr<tls::ServerContext> tls) {
    using namespace asio::experimental::awaitable_operators;
    co_await (tick(gate, tls) && on_hangup(gate, tls));
}

}  // namespace memtide::fm
