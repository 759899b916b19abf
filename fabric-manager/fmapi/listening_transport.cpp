#include "fabric-manager/fmapi/listening_transport.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "common/base/keep_alive.h"
#include "common/log/log.h"
#include "fabric-manager/fmapi/stream_transport.h"

namespace memtide::fm {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::string_view kListenScheme = "tcp://";
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
// Out of descriptors or the like: not at once again.
constexpr std::chrono::milliseconds kAcceptBackoff{100};

std::unexpected<Error> bad_listener(std::string_view text, std::string_view why) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is no address to listen at for a switch: {}", text, why));
}

// Accepts switches; the newest is the one that counts. Handlers keep it alive.
struct Reception : std::enable_shared_from_this<Reception> {
    Reception(const asio::any_io_executor& executor, SwitchListener listener)
        : acceptor(executor),
          arrived(executor, asio::steady_timer::time_point::max()),
          backoff(executor),
          where(std::move(listener)) {}

    tcp::acceptor acceptor;
    asio::steady_timer arrived;  // cancelled when a switch has come
    asio::steady_timer backoff;
    SwitchListener where;
    std::optional<tcp::socket> waiting;  // connected, and not used yet
    std::function<void()> replaced;      // told of it: what is in use is an old connection

    void accept() {
        acceptor.async_accept([self = shared_from_this()](error_code ec, tcp::socket socket) {
            if (!self->acceptor.is_open()) return;
            if (ec) return self->accept_later();
            self->admit(std::move(socket));
            self->accept();
        });
    }
    void accept_later() {
        backoff.expires_after(kAcceptBackoff);
        backoff.async_wait([self = shared_from_this()](error_code ec) {
            if (!ec && self->acceptor.is_open()) self->accept();
        });
    }
    void admit(tcp::socket socket) {
        error_code ec;
        const tcp::endpoint peer = socket.remote_endpoint(ec);
        if (ec) return;
        if (!where.from.empty() && std::ranges::find(where.from, plain(peer.address())) == where.from.end()) {
            log::warning("connection refused: no switch is expected from there",
                         {{"from", peer.address().to_string()}, {"port", where.port}});
            return;
        }
        socket.set_option(tcp::no_delay(true), ec);
        keep_alive(socket.native_handle());
        waiting.emplace(std::move(socket));
        if (replaced) replaced();
        arrived.cancel();
    }
    // An IPv4 address that came over an IPv6 socket.
    static asio::ip::address plain(const asio::ip::address& address) {
        if (address.is_v6() && address.to_v6().is_v4_mapped())
            return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
        return address;
    }
};

class ListeningTransport final : public StreamTransport {
  public:
    ListeningTransport(std::shared_ptr<Reception> reception, std::string address,
                       fmapi::SwitchCapture capture)
        : StreamTransport(std::move(capture)),
          reception_(std::move(reception)),
          address_(std::move(address)) {
        reception_->replaced = [this] {
            if (awaited_) return;
            drop();
            user().lost({ErrorCode::kUnavailable, "receive: the switch has connected anew"});
        };
        reception_->accept();
    }
    ~ListeningTransport() override {
        error_code ignored;
        reception_->replaced = nullptr;
        reception_->acceptor.close(ignored);
        reception_->arrived.cancel();
        reception_->backoff.cancel();
        reception_->waiting.reset();
    }
    ListeningTransport(const ListeningTransport&) = delete;

    asio::awaitable<Result<>> open(TimePoint deadline, const fmapi::WireFormat& format) override {
        drop();
        const auto reception = reception_;
        const std::uint64_t closings = closings_;
        if (!reception->waiting) {
            reception->arrived.expires_at(deadline);
            const Awaiting awaiting(awaited_);
            const auto [ec] = co_await reception->arrived.async_wait(kAsTuple);
            if (!reception->waiting && (!ec || std::chrono::steady_clock::now() >= deadline))
                co_return fail(ErrorCode::kUnavailable,
                               fmt::format("no switch has connected to {}", address_));
            if (!reception->waiting || closings_ != closings)
                co_return fail(ErrorCode::kCancelled, "waiting for the switch to connect: cancelled");
        }
        use(std::move(*reception->waiting), format);
        reception->waiting.reset();
        co_return Result<>{};
    }
    void close() override {
        ++closings_;
        reception_->arrived.cancel();
        StreamTransport::close();
    }

  private:
    // However the wait ends.
    struct Awaiting {
        bool& flag;
        explicit Awaiting(bool& awaited) : flag(awaited) { flag = true; }
        ~Awaiting() { flag = false; }
        Awaiting(const Awaiting&) = delete;
    };

    std::shared_ptr<Reception> reception_;
    std::string address_;
    std::uint64_t closings_ = 0;
    bool awaited_ = false;  // somebody waits for the switch, and takes what comes
};

Error listen_error(std::string_view address, const error_code& ec) {
    const bool taken = ec == asio::error::address_in_use;
    const bool forbidden = ec == asio::error::access_denied;
    return {taken       ? ErrorCode::kAlreadyExists
            : forbidden ? ErrorCode::kPermission
                        : ErrorCode::kIo,
            fmt::format("listen on {} for a switch: {}", address, ec.message())};
}

}  // namespace

Result<SwitchListener> parse_switch_listener(std::string_view text, const std::vector<std::string>& from) {
    if (!text.starts_with(kListenScheme)) return bad_listener(text, "write tcp://ADDRESS:PORT");
    const std::string_view rest = text.substr(kListenScheme.size());
    const auto colon = rest.rfind(':');
    if (colon == std::string_view::npos)
        return bad_listener(text, "the port is missing, write tcp://ADDRESS:PORT");
    SwitchListener where;
    const std::string_view port = rest.substr(colon + 1);
    const auto [stop, status] = std::from_chars(port.data(), port.data() + port.size(), where.port);
    if (status != std::errc{} || stop != port.data() + port.size() || where.port == 0)
        return bad_listener(text, "the port must be 1 to 65535");
    std::string host(rest.substr(0, colon));
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    error_code ec;
    where.address = asio::ip::make_address(host, ec);
    if (ec) return bad_listener(text, "write an IP address of this machine, tcp://127.0.0.1:2651");
    for (const std::string& one : from) {
        where.from.push_back(asio::ip::make_address(one, ec));
        if (ec) return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not an IP address", one));
    }
    if (!where.address.is_loopback() && where.from.empty())
        return bad_listener(
            text,
            "it is not a loopback address, and a switch does not say who it is: name the addresses "
            "that it may come from, from: [ADDRESS] (docs/security.md)");
    return where;
}

Result<std::unique_ptr<Transport>> listen_for_switch(const asio::any_io_executor& executor,
                                                     const SwitchListener& where,
                                                     fmapi::SwitchCapture capture) {
    const std::string address = where.address.is_v6()
                                    ? fmt::format("tcp://[{}]:{}", where.address.to_string(), where.port)
                                    : fmt::format("tcp://{}:{}", where.address.to_string(), where.port);
    const auto reception = std::make_shared<Reception>(executor, where);
    const tcp::endpoint endpoint(where.address, where.port);
    error_code ec;
    reception->acceptor.open(endpoint.protocol(), ec);
    if (!ec) reception->acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) reception->acceptor.bind(endpoint, ec);
    if (!ec) reception->acceptor.listen(tcp::acceptor::max_listen_connections, ec);
    if (ec) return std::unexpected(listen_error(address, ec));
    return std::make_unique<ListeningTransport>(reception, address, std::move(capture));
}

}  // namespace memtide::fm
