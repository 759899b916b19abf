#include "fabric-manager/fmapi/connection.h"

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

namespace memtide::fm {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadSize = 4096;
// More than this unread between two commands is not a few notifications but a flood.
constexpr std::size_t kFlood = 1 << 20;

}  // namespace

struct Connection::Io : std::enable_shared_from_this<Io> {
    explicit Io(const asio::any_io_executor& executor)
        : socket(executor), resolver(executor), deadline(executor) {}

    asio::generic::stream_protocol::socket socket;
    asio::ip::tcp::resolver resolver;
    asio::steady_timer deadline;
    const auto resolution = std::make_shared<Io::Resolution>(io->resolver.get_executor());
    io->resolution = resolution;
    io->resolver.async_resolve(address.host, address.port,
                               [resolution](error_code ec, asio::ip::tcp::resolver::results_type endpoints) {
                                   resolution->ec = ec;
                                   resolution->endpoints = std::move(endpoints);
                                   resolution->answered.cancel();
                               });
    co_await resolution->answered.async_wait(kTuple);
    if (resolution->ec || io->expired)
        co_return std::unexpected(io->error("resolve " + address.host, resolution->ec));

    error_code last = asio::error::host_not_found;
    for (const auto& entry : resolution->endpoints) {
        error_code ignored;
        io->socket.close(ignored);
        const asio::generic::stream_protocol::endpoint endpoint = entry.endpoint();
        const auto [ec] = co_await io->socket.async_connect(endpoint, kTuple);
        last = ec;
        if (io->expired || ec == asio::error::operation_aborted) break;
        if (!ec) {
            // Commands are small and each waits for its answer.
            io->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
            co_return Result<>{};
        }
    }
    co_return std::unexpected(io->error("connect", last));
}

asio::awaitable<Result<>>
Connection::send(const fmapi::MctpMessage& message) {
    const auto io = io_;
    const std::vector<std::byte> packets = fmapi::to_packets(message);
    sending_ = true;
    const auto [ec, written] = co_await asio::async_write(io->socket, asio::buffer(packets), kTuple);
    sending_ = false;
    if (ec || io->expired) {
        Error error = io->error("send", ec);
        close();
        co_return std::unexpected(std::move(error));
    }
    co_return Result<>{};
}

asio::awaitable<Result<fmapi::MctpMessage>> Connection::receive() {
    const auto io = io_;
    while (true) {
        auto message = assembler_.next();
        if (!message) {
            close();
            co_return std::unexpected(message.error());
        }
        if (*message) co_return std::move(**message);
        if (io->expired) co_return std::unexpected(io->error("receive", {}));
        const auto [ec, got] = co_await io->socket.async_read_some(asio::buffer(io->buffer), kTuple);
        if (!ec) {
            assembler_.feed(std::span(io->buffer).first(got));
            continue;
        }
        Error error = io->error("receive", ec);
        if (error.code != ErrorCode::kTimeout && error.code != ErrorCode::kCancelled) close();
        co_return std::unexpected(std::move(error));
    }
}

bool Connection::still_open() {
    if (!io_->socket.is_open()) return false;
    if (sending_) {  // the coroutine that sent was cancelled in the middle
        close();
        return false;
    }
    for (std::size_t total = 0; total < kFlood;) {
        const ssize_t got =
            ::recv(io_->socket.native_handle(), io_->buffer.data(), io_->buffer.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
        if (got <= 0) break;
        assembler_.feed(std::span(io_->buffer).first(static_cast<std::size_t>(got)));
        total += static_cast<std::size_t>(got);
    }
    close();
    return false;
}

}  // namespace memtide::fm
