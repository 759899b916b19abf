#include "fabric-manager/fmapi/stream_transport.h"

#include <string_view>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

namespace memtide::fm {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

}  // namespace

void StreamTransport::use(StreamSocket socket, const fmapi::WireFormat& format) {
    drop();
    link_ = std::make_shared<StreamLink>(std::move(socket), format, capture_.connection());
    link_->start([this](fmapi::MctpMessage&& message) { user().received(std::move(message)); },
                 [this](Error error) { user().lost(std::move(error)); });
}

// One attempt to connect; shared with handlers that may run after its coroutine is gone.
struct DialingTransport::Dial : std::enable_shared_from_this<Dial> {
    explicit Dial(const asio::any_io_executor& executor)
        : socket(executor), resolver(executor), resolved(executor, TimePoint::max()), deadline(executor) {}

    StreamSocket socket;
    asio::ip::tcp::resolver resolver;
    // The resolver cannot be interrupted inside getaddrinfo, so its answer is waited for from the side: this
    // is cancelled when there is one, or no more need of one.
    asio::steady_timer resolved;
    error_code resolve_error = asio::error::operation_aborted;
    asio::ip::tcp::resolver::results_type endpoints;
    asio::steady_timer deadline;
    bool expired = false;
    bool ended = false;

    void give_up() {
        ended = true;
        error_code ignored;
        socket.close(ignored);
        resolved.cancel();
        resolver.cancel();
    }
    void expire_at(TimePoint when) {
        deadline.expires_at(when);
        deadline.async_wait([self = shared_from_this()](error_code ec) {
            if (ec || self->ended) return;
            self->expired = true;
            self->give_up();
        });
    }
    [[nodiscard]] std::unexpected<Error> error(std::string_view action, const error_code& ec) const {
        if (expired) return fail(ErrorCode::kTimeout, fmt::format("{}: no answer in time", action));
        if (ec == asio::error::operation_aborted || ended)
            return fail(ErrorCode::kCancelled, fmt::format("{}: cancelled", action));
        return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", action, ec.message()));
    }
};

DialingTransport::DialingTransport(const asio::any_io_executor& executor, SwitchAddress address,
                                   fmapi::SwitchCapture capture)
    : StreamTransport(std::move(capture)), executor_(executor), address_(std::move(address)) {}

DialingTransport::~DialingTransport() { DialingTransport::close(); }

void DialingTransport::close() {
    if (const auto under_way = dial_.lock()) under_way->give_up();
    StreamTransport::close();
}

asio::awaitable<Result<>> DialingTransport::open(TimePoint deadline, const fmapi::WireFormat& format) {
    close();
    const auto attempt = std::make_shared<Dial>(executor_);
    dial_ = attempt;
    attempt->expire_at(deadline);
    // However the coroutine ends: the timer must not act on a socket that is in use.
    struct End {
        std::shared_ptr<Dial> attempt;
        ~End() {
            attempt->ended = true;
            attempt->deadline.cancel();
        }
    };
    const End end{attempt};
    Result<> connected = co_await dial(attempt, address_);
    if (connected) use(std::move(attempt->socket), format);
    co_return connected;
}

asio::awaitable<Result<>> DialingTransport::dial(std::shared_ptr<Dial> dial, SwitchAddress address) {
    if (!address.path.empty()) {
        const asio::generic::stream_protocol::endpoint endpoint =
            asio::local::stream_protocol::endpoint(address.path);
        const auto [ec] = co_await dial->socket.async_connect(endpoint, kTuple);
        if (ec || dial->ended) co_return dial->error("connect", ec);
        co_return Result<>{};
    }
    dial->resolver.async_resolve(address.host, address.port,
                                 [dial](error_code ec, asio::ip::tcp::resolver::results_type endpoints) {
                                     dial->resolve_error = ec;
                                     dial->endpoints = std::move(endpoints);
                                     dial->resolved.cancel();
                                 });
    co_await dial->resolved.async_wait(kTuple);
    if (dial->resolve_error || dial->ended)
        co_return dial->error("resolve " + address.host, dial->resolve_error);

    error_code last = asio::error::host_not_found;
    for (const auto& entry : dial->endpoints) {
        error_code ignored;
        dial->socket.close(ignored);
        const asio::generic::stream_protocol::endpoint endpoint = entry.endpoint();
        const auto [ec] = co_await dial->socket.async_connect(endpoint, kTuple);
        last = ec;
        if (dial->ended || ec == asio::error::operation_aborted) break;
        if (!ec) {
            // Commands are small and each waits for its answer.
            dial->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
            co_return Result<>{};
        }
    }
    co_return dial->error("connect", last);
}

}  // namespace memtide::fm
