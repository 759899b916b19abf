#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "common/base/error.h"

namespace memtide::http {

// One address a server listens on. A unix socket's file is removed again when it closes.
class Listener {
  public:
    // "127.0.0.1:8080", "[::1]:8080" or "unix:/path"; errors as Server::listen.
    static Result<std::shared_ptr<Listener>> open(boost::asio::any_io_executor executor,
                                                  const std::string& address);
    virtual ~Listener() = default;
    virtual boost::asio::awaitable<boost::system::error_code> accept(
        boost::asio::generic::stream_protocol::socket& socket) = 0;
    [[nodiscard]] virtual std::uint16_t port() const = 0;  // 0 unless TCP
    virtual void close() = 0;
};

}  // namespace memtide::http
