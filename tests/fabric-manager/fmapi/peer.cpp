#include "tests/fabric-manager/fmapi/peer.h"

#include <array>
#include <cstring>
#include <exception>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace memtide::fm::test {
namespace asio = boost::asio;

namespace {
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
}

asio::awaitable<void> PeerConnection::write(std::vector<std::byte> raw) {
    co_await asio::async_write(socket_, asio::buffer(raw), kTuple);
}

asio::awaitable<void> PeerConnection::answer(const fmapi::MctpMessage& request, fmapi::Message message) {
    const fmapi::MctpMessage packet{fmapi::reply_route(request.route), request.type, std::move(message)};
    co_await write(fmapi::to_packets(packet));
}

asio::awaitable<void> PeerConnection::succeed(const fmapi::MctpMessage& request, fmapi::Payload payload) {
    auto response = fmapi::make_response(request.message, fmapi::ReturnCode::kSuccess, std::move(payload));
    co_await answer(request, std::move(response));
}

asio::awaitable<void> PeerConnection::notify() {
    fmapi::MctpMessage notification;
    notification.message = fmapi::make_request(fmapi::Opcode::kEventNotification, 0, fmapi::Payload(1));
    co_await write(fmapi::to_packets(notification));
}

void PeerConnection::close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
}

Peer::Peer(asio::io_context& io) : io_(io), acceptor_(io) {
    endpoint_ = asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0);
    start();
    endpoint_ = acceptor_.local_endpoint();
    asio::ip::tcp::endpoint bound;
    bound.resize(endpoint_.size());
    std::memcpy(bound.data(), endpoint_.data(), endpoint_.size());
    address_ = fmt::format("tcp://127.0.0.1:{}", bound.port());
}

Peer::Peer(asio::io_context& io, const std::string& unix_path) : io_(io), acceptor_(io) {
    endpoint_ = asio::local::stream_protocol::endpoint(unix_path);
    start();
    address_ = "unix://" + unix_path;
}

Peer::~Peer() { stop(); }

void Peer::start() {
    acceptor_.open(endpoint_.protocol());
    acceptor_.set_option(asio::socket_base::reuse_address(true));
    acceptor_.bind(endpoint_);
    acceptor_.listen();
    asio::co_spawn(io_, accept(), asio::detached);
}

void Peer::stop() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    for (const auto& weak : open_)
        if (const auto connection = weak.lock()) connection->close();
    open_.clear();
}

asio::awaitable<void> Peer::accept() {
    while (acceptor_.is_open()) {
        auto connection = std::make_shared<PeerConnection>(asio::generic::stream_protocol::socket(io_));
        const auto [ec] = co_await acceptor_.async_accept(connection->socket_, kTuple);
        if (ec) co_return;
        ++connections;
        open_.push_back(connection);
        asio::co_spawn(io_, serve(connection), asio::detached);
    }
}

asio::awaitable<void> Peer::serve(std::shared_ptr<PeerConnection> connection) {
    fmapi::PacketAssembler assembler;
    std::array<std::byte, 1000> buffer{};
    while (connection->socket_.is_open()) {
        const auto [ec, got] = co_await connection->socket_.async_read_some(asio::buffer(buffer), kTuple);
        if (ec) co_return;
        assembler.feed(std::span(buffer).first(got));
        while (true) {
            auto next = assembler.next();
            if (!next || !*next) break;
            requests.push_back((*next)->message);
            const Handler handler = handler_;  // the test may change it meanwhile
            co_await handler(*connection, std::move(**next));
        }
    }
}

void run(asio::io_context& io, std::function<asio::awaitable<void>()> body) {
    bool ended = false;
    std::exception_ptr thrown;
    asio::co_spawn(io, body(), [&](std::exception_ptr error) {
        ended = true;
        thrown = error;
    });
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!ended && std::chrono::steady_clock::now() < give_up) {
        if (io.stopped()) io.restart();
        io.run_one_for(std::chrono::seconds(1));
    }
    ASSERT_TRUE(ended) << "the call under test hangs";
    if (thrown) std::rethrow_exception(thrown);
}

}  // namespace memtide::fm::test
