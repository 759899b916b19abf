#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/http/router.h"
#include "common/tls/server_context.h"

namespace memtide::http {

// Each limit protects the process from one kind of client; crossing it gets the named answer.
struct ServerLimits {
    std::size_t body_bytes = 1 << 20;     // 413 problem "body-too-large"
    std::size_t header_bytes = 16 << 10;  // 431 problem "headers-too-large"
    std::chrono::milliseconds request_timeout{
        10'000};                                     // headers and body must be in by then, else closed (408)
    std::chrono::milliseconds idle_timeout{60'000};  // between requests of a kept-alive connection
    std::chrono::milliseconds write_timeout{30'000};  // a client that does not read is dropped
    std::size_t connections = 4096;                   // beyond: 503 problem "too-many-connections", closed
};

// How a server's TCP listeners speak TLS. Unix sockets never do: what passes through them stays on the
// machine.
struct ServerSecurity {
    std::shared_ptr<tls::ServerContext> tls;  // null: they do not
    // Told of every client that was not let in: its address, and why.
    std::function<void(const std::string& peer, const std::string& why)> on_failed_handshake;
};

// HTTP/1.1 server on Boost.Beast. Runs on one executor (an io_context thread or a strand); handlers are
// coroutines on it. An exception out of a handler is logged and answered 500 problem "internal-error".
class Server {
  public:
    Server(boost::asio::any_io_executor executor, const Router& router, ServerLimits limits = {},
           ServerSecurity security = {});
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // "127.0.0.1:8080", "[::1]:8080" or "unix:/path" (port 0: any free one). May be called more than once.
    // kUnavailable with the address when it is in use; kInvalidArgument when it cannot be parsed.
    Result<> listen(const std::string& address);
    // The port of the first TCP listener.
    [[nodiscard]] std::uint16_t port() const;
    // Stops accepting, ends idle connections and streams, waits up to `grace` for running handlers.
    boost::asio::awaitable<void> stop(std::chrono::milliseconds grace);
    [[nodiscard]] std::size_t connection_count() const;

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace memtide::http
