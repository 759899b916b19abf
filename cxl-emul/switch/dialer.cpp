#include "cxl-emul/switch/dialer.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

namespace memtide::emul {
namespace asio = boost::asio;

asio::awaitable<Result<StreamSocket>> dial(asio::any_io_executor executor, Endpoint endpoint) {
    using Any = asio::generic::stream_protocol::endpoint;
    Any where;
    if (endpoint.kind == Endpoint::Kind::kTcp)
        where = asio::ip::tcp::endpoint(asio::ip::make_address(endpoint.host), endpoint.port);
    else
        where = asio::local::stream_protocol::endpoint(endpoint.path);
    StreamSocket socket(executor);
    boost::system::error_code error;
    co_await socket.async_connect(where, asio::redirect_error(asio::use_awaitable, error));
    if (error)
        co_return fail(ErrorCode::kUnavailable,
                       fmt::format("connect to {}: {}", format_endpoint(endpoint), error.message()));
    boost::system::error_code ignored;
    if (endpoint.kind == Endpoint::Kind::kTcp) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    co_return Result<StreamSocket>(std::move(socket));
}

}  // namespace memtide::emul
