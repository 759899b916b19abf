#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "common/fmapi/commands.h"
#include "fabric-manager/fmapi/client.h"

namespace memtide::fm::test {

// One connection to the peer below, from the peer's side.
class PeerConnection {
  public:
    explicit PeerConnection(boost::asio::generic::stream_protocol::socket socket)
        : socket_(std::move(socket)) {}

    boost::asio::awaitable<void> write(std::vector<std::byte> raw);
    // Sends `message` as an answer to `request`.
    boost::asio::awaitable<void> answer(const fmapi::MctpMessage& request, fmapi::Message message);
    // Sends a success with this payload.
    boost::asio::awaitable<void> succeed(const fmapi::MctpMessage& request, fmapi::Payload payload);
    // A request of the switch's own: an event notification.
    boost::asio::awaitable<void> notify();
    void close();

    boost::asio::generic::stream_protocol::socket socket_;
};

using Handler = std::function<boost::asio::awaitable<void>(PeerConnection&, fmapi::MctpMessage)>;

// A switch that does to each request what the test's handler says. Everything runs on the test's io_context.
class Peer {
  public:
    // Listens on a free port of the loopback interface, or on a unix socket.
    explicit Peer(boost::asio::io_context& io);
    Peer(boost::asio::io_context& io, const std::string& unix_path);
    ~Peer();

    [[nodiscard]] const std::string& address() const { return address_; }
    void handle(Handler handler) { handler_ = std::move(handler); }
    // Closes the listening socket and the open connections; start() listens at the same address again.
    void stop();
    void start();

    int connections = 0;                   // accepted so far
    std::vector<fmapi::Message> requests;  // seen so far

  private:
    boost::asio::awaitable<void> accept();
    boost::asio::awaitable<void> serve(std::shared_ptr<PeerConnection> connection);

    boost::asio::io_context& io_;
    boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
    boost::asio::generic::stream_protocol::endpoint endpoint_;
    std::string address_;
    Handler handler_;
    std::vector<std::weak_ptr<PeerConnection>> open_;
};

// Runs `body` on `io` until it ends; the test fails when that takes longer than a minute.
void run(boost::asio::io_context& io, std::function<boost::asio::awaitable<void>()> body);

// Timeouts that never pass in a test that expects success.
inline ClientOptions patient(const Peer& peer) {
    using namespace std::chrono_literals;
    return {.address = peer.address(), .connect_timeout = 30s, .command_timeout = 30s, .repetitions = 0};
}
// For tests that expect no answer.
inline ClientOptions impatient(const Peer& peer) {
    using namespace std::chrono_literals;
    return {.address = peer.address(), .connect_timeout = 30s, .command_timeout = 100ms, .repetitions = 0};
}

}  // namespace memtide::fm::test
