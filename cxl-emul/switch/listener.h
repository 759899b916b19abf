#pragma once

#include <memory>
#include <string>
#include <variant>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "common/base/error.h"
#include "cxl-emul/switch/endpoint.h"

namespace memtide::emul {

using StreamSocket = boost::asio::generic::stream_protocol::socket;

// A bound and listening TCP or unix socket. Not thread safe.
class Listener {
  public:
    // kAlreadyExists when somebody listens there already; a unix socket that a dead process left is taken
    // over, any other kind of file at its path is not.
    static Result<Listener> open(const boost::asio::any_io_executor& executor, const Endpoint& endpoint);
    ~Listener();
    Listener(Listener&&) noexcept;
    Listener& operator=(Listener&&) = delete;

    // The endpoint with the real port.
    [[nodiscard]] const std::string& address() const { return address_; }
    // The next connection; kCancelled after close(), kIo when accepting fails for now (out of descriptors).
    boost::asio::awaitable<Result<StreamSocket>> accept();
    // Also removes the unix socket's file, when it is still this one's.
    void close();

  private:
    struct SocketFile;
    using TcpAcceptor = boost::asio::ip::tcp::acceptor;
    using UnixAcceptor = boost::asio::local::stream_protocol::acceptor;

    static Result<Listener> open_tcp(const boost::asio::any_io_executor& executor, const Endpoint& endpoint);
    static Result<Listener> open_unix(const boost::asio::any_io_executor& executor, const Endpoint& endpoint);
    Listener(std::variant<TcpAcceptor, UnixAcceptor> acceptor, std::string address,
             std::unique_ptr<SocketFile> file);
    std::variant<TcpAcceptor, UnixAcceptor> acceptor_;
    std::string address_;
    std::unique_ptr<SocketFile> file_;  // of a unix socket
};

}  // namespace memtide::emul
