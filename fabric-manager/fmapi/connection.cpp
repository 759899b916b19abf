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
    // The resolver cannot be interrupted inside getaddrinfo, so its answer is waited for from the side.
    struct Resolution {
        explicit Resolution(const asio::any_io_executor& executor)
            : answered(executor, asio::steady_timer::time_point::max()) {}
        asio::steady_timer answered;  // cancelled when there is an answer, or no more need of one
        error_code ec = asio::error::operation_aborted;
        asio::ip::tcp::resolver::results_type endpoints;
    };
    std::shared_ptr<Resolution> resolution;  // the one that is waited for, if any
    std::uint64_t armed = 0;  // which deadline counts: an older one's handler may still be queued
    bool expired = false;
    std::vector<std::byte> buffer = std::vector<std::byte>(kReadSize);

    void expire() {
        expired = true;
        error_code ignored;
        if (socket.is_open()) socket.cancel(ignored);
        stop_resolving();
    }
    void stop_resolving() {
        if (resolution) resolution->answered.cancel();
        resolution.reset();
        resolver.cancel();
    }
    [[nodiscard]] Error error(std::string_view action, const error_code& ec) const {
        if (expired) return {ErrorCode::kTimeout, fmt::format("{}: no answer in time", action)};
        if (ec == asio::error::operation_aborted)
            return {ErrorCode::kCancelled, fmt::format("{}: cancelled", action)};
        if (ec == asio::error::eof)
            return {ErrorCode::kUnavailable, fmt::format("{}: the switch closed the connection", action)};
        return {ErrorCode::kUnavailable, fmt::format("{}: {}", action, ec.message())};
    }
};

Connection::Connection(asio::any_io_executor executor) : io_(std::make_shared<Io>(executor)) {}

Connection::~Connection() {
    clear_deadline();
    close();
}

void Connection::set_deadline(TimePoint deadline) {
    io_->expired = false;
    const std::uint64_t mine = ++io_->armed;
    io_->deadline.expires_at(deadline);
    io_->deadline.async_wait([io = io_, mine](error_code ec) {
        if (!ec && io->armed == mine) io->expire();
    });
}

void Connection::clear_deadline() {
    ++io_->armed;
    io_->expired = false;
    io_->deadline.cancel();
}

void Connection::close() {
    error_code ignored;
    io_->socket.close(ignored);
    io_->stop_resolving();
    assembler_ = fmapi::PacketAssembler();
    sending_ = false;
}

asio::awaitable<Result<>> Connection::open(const SwitchAddress& address) {
    close();
    Result<> connected;
    if (address.path.empty())
        connected = co_await connect_tcp(address);
    else
        connected = co_await connect_unix(address);
    if (!connected) close();
    co_return connected;
}

asio::awaitable<Result<>> Connection::connect_unix(const SwitchAddress& address) {
    const auto io = io_;
    const asio::generic::stream_protocol::endpoint endpoint =
        asio::local::stream_protocol::endpoint(address.path);
    const auto [ec] = co_await io->socket.async_connect(endpoint, kTuple);
    if (ec || io->expired) co_return std::unexpected(io->error("connect", ec));
    co_return Result<>{};
}

asio::awaitable<Result<>> Connection::connect_tcp(const SwitchAddress& address) {
    const auto io = io_;
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

asio::awaitable<Result<>> Connection::send(const fmapi::MctpMessage& message) {
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
        auto message = next();
        if (!message) co_return std::unexpected(message.error());
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

Result<std::optional<fmapi::MctpMessage>> Connection::next() {
    auto message = assembler_.next();
    if (!message) close();
    return message;
}

void Connection::when_readable(std::function<void(bool)> ready) {
    io_->socket.async_wait(asio::socket_base::wait_read,
                           [io = io_, ready = std::move(ready)](error_code ec) { ready(!ec); });
}

bool Connection::is_open() const { return io_->socket.is_open(); }

}  // namespace memtide::fm
