#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include "common/tls/session.h"

namespace memtide::http {

// A connection's bytes, in the clear or through TLS: whoever reads and writes need not know which. One read
// and one write at a time. Not thread safe.
class Stream {
  public:
    using Socket = boost::asio::generic::stream_protocol::socket;
    using Error = boost::system::error_code;

    explicit Stream(Socket socket) : socket_(std::move(socket)) {}

    // From now on everything goes through `session`; handshake() comes next. With an open, non-blocking
    // socket.
    void secure(std::unique_ptr<tls::Session> session) { session_ = std::move(session); }
    // connection_aborted when it failed; session()->failure() says why.
    boost::asio::awaitable<Error> handshake();

    // Until read_some() would not have to wait, as far as can be told: without a buffer, unlike that.
    boost::asio::awaitable<Error> wait_readable();
    // At least one byte, or an error; eof at the end.
    boost::asio::awaitable<std::pair<Error, std::size_t>> read_some(boost::asio::mutable_buffer into);
    // What can be written at once; would_block when nothing can.
    std::size_t write_now(std::string_view text, Error& error);
    // All of it.
    boost::asio::awaitable<Error> write(std::string_view text);
    // Tells the peer that nothing follows.
    void shutdown_send(Error& error);
    void close();

    [[nodiscard]] Socket& socket() { return socket_; }
    [[nodiscard]] bool is_open() const { return socket_.is_open(); }
    [[nodiscard]] tls::Session* session() const { return session_.get(); }  // null: in the clear

  private:
    boost::asio::awaitable<Error> wait_for(tls::Session::Status status);

    Socket socket_;
    std::unique_ptr<tls::Session> session_;
};

}  // namespace memtide::http
