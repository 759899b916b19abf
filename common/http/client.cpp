#include "common/http/client.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include "common/base/no_throw.h"
#include "common/http/encode.h"
#include "common/http/response_parser.h"
#include "common/http/stream.h"

namespace memtide::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

struct Base {
    std::string host;  // as in the Host header; without the port for the resolver
    std::string port;
    std::string unix_path;    // instead of both
    std::string host_header;  // "127.0.0.1:8080"
    bool secure = false;      // https

    // Whether what is sent there stays on this machine.
    [[nodiscard]] bool is_local() const {
        error_code error;
        const auto address = asio::ip::make_address(host, error);
        return !unix_path.empty() || host == "localhost" || (!error && address.is_loopback());
    }
};

Result<Base> parse_base(const std::string& url) {
    constexpr std::string_view kUnix = "unix:";
    constexpr std::string_view kHttp = "http://";
    constexpr std::string_view kHttps = "https://";
    Base base;
    if (url.starts_with(kUnix)) {
        base.unix_path = url.substr(kUnix.size());
        if (base.unix_path.starts_with("//")) base.unix_path.erase(0, 2);
        base.host_header = "localhost";
        if (base.unix_path.empty() || base.unix_path.size() >= sizeof(sockaddr_un::sun_path))
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("\"{}\" does not name a socket's path", url));
        return base;
    }
    const auto bad = [&url] {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "\"{}\" is not a URL such as https://manager:8443, http://127.0.0.1:8080 or unix:/PATH",
                url));
    };
    base.secure = url.starts_with(kHttps);
    if (!base.secure && !url.starts_with(kHttp)) return bad();
    std::string rest = url.substr(base.secure ? kHttps.size() : kHttp.size());
    if (rest.ends_with('/')) rest.pop_back();
    for (const char c : rest)
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || std::string_view("/?#@").contains(c))
            return bad();
    base.host_header = rest;
    const auto bracket = rest.rfind(']');
    const auto colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
    base.host = rest.substr(0, colon);
    base.port = colon == std::string::npos ? (base.secure ? "443" : "80") : rest.substr(colon + 1);
    if (base.host.starts_with('[') && base.host.ends_with(']'))
        base.host = base.host.substr(1, base.host.size() - 2);
    unsigned port = 0;
    const char* const end = base.port.data() + base.port.size();
    const auto [stop, status] = std::from_chars(base.port.data(), end, port);
    if (base.host.empty() || status != std::errc{} || stop != end || port == 0 || port > 65535) return bad();
    return base;
}

// Repeating these changes nothing (RFC 9110, 9.2.2), nor does a POST that carries a key for it.
bool may_repeat(const ClientRequest& request) {
    const bool changes_again = request.method == "POST" || request.method == "PATCH";
    return !changes_again || request.headers.contains("Idempotency-Key");
}

// A target or method that would end the request line early is a mistake of the caller.
bool is_clean(std::string_view text) {
    for (const char c : text)
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return false;
    return !text.empty();
}

}  // namespace

struct Client::Impl {
    Impl(asio::any_io_executor on, std::string base_url, std::shared_ptr<Credentials> what)
        : executor(std::move(on)),
          url(std::move(base_url)),
          base(parse_base(url)),
          credentials(std::move(what)) {}

    // What a deadline has to interrupt.
    struct Work {
        explicit Work(const asio::any_io_executor& executor)
            : stream(Stream::Socket(executor)), resolver(executor) {}
        void interrupt() {
            timed_out = true;
            stream.close();
            resolver.cancel();
        }
        Stream stream;
        bool ready = false;  // connected, and the handshake done
        asio::ip::tcp::resolver resolver;
        bool timed_out = false;
    };
    using Chunk = std::function<bool(std::string_view)>;

    asio::awaitable<Result<ClientResponse>> exchange(ClientRequest request, Chunk on_chunk);
    asio::awaitable<Result<>> attempt(const ClientRequest& request, ResponseParser& parser,
                                      asio::steady_timer& deadline, bool streaming);
    asio::awaitable<Result<>> connect();
    asio::awaitable<error_code> connect_tcp();
    asio::awaitable<Result<>> begin_tls();
    Result<> add_token(ClientRequest& request);
    asio::awaitable<Result<>> receive(ResponseParser& parser, asio::steady_timer& deadline, bool streaming);
    void drop();
    [[nodiscard]] bool is_stale() const;
    [[nodiscard]] Error explain(std::string_view action, const error_code& error) const;
    [[nodiscard]] Error explain_tls(std::string_view action) const;

    asio::any_io_executor executor;
    std::string url;
    Result<Base> base;
    std::shared_ptr<Credentials> credentials;
    std::shared_ptr<Work> work;  // the connection; kept between exchanges
    std::string leftover;        // received behind the last response
};

void Client::Impl::drop() {
    work.reset();
    leftover.clear();
}

// Whether the peer has closed a kept connection, or said something unasked.
bool Client::Impl::is_stale() const {
    if (tls::Session* const session = work->stream.session()) return session->has_more() || !leftover.empty();
    char byte = 0;
    const ssize_t got = ::recv(work->stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || !leftover.empty();
}

Error Client::Impl::explain(std::string_view action, const error_code& error) const {
    if (work && work->timed_out)
        return {ErrorCode::kTimeout, fmt::format("{} {}: no answer in time", action, url)};
    if (error == asio::error::operation_aborted)
        return {ErrorCode::kCancelled, fmt::format("{} {}: cancelled", action, url)};
    if (error == asio::error::connection_aborted && work && work->stream.session() != nullptr)
        return explain_tls(action);
    return {ErrorCode::kUnavailable, fmt::format("{} {}: {}", action, url, error.message())};
}

// A server that just goes away may come back; one that does not trust us, or we it, will not change its mind.
Error Client::Impl::explain_tls(std::string_view action) const {
    tls::Session& session = *work->stream.session();
    const bool ended =
        session.failure() == "the connection ended" || session.failure() == "Connection reset by peer";
    const auto context = credentials->tls();
    const std::string why = context ? (*context)->explain(session, base->host) : session.failure();
    return {ended ? ErrorCode::kUnavailable : ErrorCode::kPermission,
            fmt::format("{} {}: {}", action, url, why)};
}

asio::awaitable<Result<>> Client::Impl::begin_tls() {
    const std::shared_ptr<Work> current = work;
    auto context = credentials->tls();
    if (!context) co_return std::unexpected(std::move(context.error()));
    error_code error;
    current->stream.socket().non_blocking(true, error);
    current->stream.secure((*context)->make_session(current->stream.socket().native_handle(), base->host));
    error = co_await current->stream.handshake();
    if (error || current->timed_out) co_return std::unexpected(explain("connect to", error));
    co_return Result<>{};
}

Result<> Client::Impl::add_token(ClientRequest& request) {
    const std::string& token = credentials->token();
    if (token.empty() || request.headers.contains("Authorization")) return {};
    if (!base->secure && !base->is_local())
        return fail(ErrorCode::kPermission,
                    fmt::format("the token is not sent in the clear to {}: use https://", url));
    request.headers["Authorization"] = "Bearer " + token;
    return {};
}

asio::awaitable<error_code> Client::Impl::connect_tcp() {
    const std::shared_ptr<Work> current = work;
    const auto [unresolved, found] =
        co_await current->resolver.async_resolve(base->host, base->port, kNoThrow);
    if (unresolved) co_return unresolved;
    error_code last = asio::error::host_not_found;
    for (const auto& entry : found) {
        if (current->timed_out) break;
        error_code ignored;
        current->stream.close();
        const auto [failed] = co_await current->stream.socket().async_connect(entry.endpoint(), kNoThrow);
        last = failed;
        if (!failed) {
            current->stream.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
            break;
        }
    }
    co_return last;
}

asio::awaitable<Result<>> Client::Impl::connect() {
    const std::shared_ptr<Work> current = work;
    error_code error;
    if (base->unix_path.empty()) {
        error = co_await connect_tcp();
    } else {
        const asio::local::stream_protocol::endpoint endpoint(base->unix_path);
        const auto [failed] = co_await current->stream.socket().async_connect(endpoint, kNoThrow);
        error = failed;
    }
    if (error || current->timed_out) co_return std::unexpected(explain("connect to", error));
    if (base->secure)
        if (auto secured = co_await begin_tls(); !secured) co_return secured;
    current->ready = true;
    co_return Result<>{};
}

asio::awaitable<Result<>> Client::Impl::receive(ResponseParser& parser, asio::steady_timer& deadline,
                                                bool streaming) {
    const std::shared_ptr<Work> current = work;
    std::array<char, 4 << 10> piece;  // NOLINT: filled by the read
    for (;;) {
        const auto [error, got] = co_await current->stream.read_some(asio::buffer(piece));
        if (current->timed_out || (error && error != asio::error::eof))
            co_return std::unexpected(explain("read from", error));
        leftover.append(piece.data(), got);
        std::string_view bytes = leftover;
        auto state = error == asio::error::eof ? parser.end() : parser.feed(bytes);
        leftover.erase(0, leftover.size() - bytes.size());
        if (!state) co_return std::unexpected(std::move(state.error()).with_context("read from " + url));
        if (parser.unwanted() || *state == ResponseParser::State::kComplete) co_return Result<>{};
        // The deadline of a stream is that of its beginning.
        if (streaming && parser.has_header()) deadline.cancel();
    }
}

asio::awaitable<Result<>> Client::Impl::attempt(const ClientRequest& request, ResponseParser& parser,
                                                asio::steady_timer& deadline, bool streaming) {
    if (work == nullptr) {
        work = std::make_shared<Work>(executor);
        leftover.clear();
    }
    deadline.async_wait([current = std::weak_ptr(work)](const error_code& error) {
        if (const auto alive = current.lock(); alive && !error) alive->interrupt();
    });
    if (!work->ready)
        if (auto connected = co_await connect(); !connected) co_return connected;
    const std::string text =
        encode_request(request.method, request.target, base->host_header, request.headers, request.body);
    const std::shared_ptr<Work> current = work;
    const error_code error = co_await current->stream.write(text);
    // A server may answer, and close, before it has taken the whole request: hear what it has to say.
    const bool refused_early = error == asio::error::broken_pipe || error == asio::error::connection_reset ||
                               (error && current->stream.session() != nullptr);
    if (current->timed_out || (error && !refused_early))
        co_return std::unexpected(explain("write to", error));
    co_return co_await receive(parser, deadline, streaming);
}

asio::awaitable<Result<ClientResponse>> Client::Impl::exchange(ClientRequest request, Chunk on_chunk) {
    if (!base) co_return std::unexpected(base.error());
    if (!is_clean(request.method) || !is_clean(request.target))
        co_return fail(ErrorCode::kInvalidArgument,
                       fmt::format("\"{} {}\" cannot be requested", request.method, request.target));
    if (auto added = add_token(request); !added) co_return std::unexpected(std::move(added.error()));
    if (work && is_stale()) drop();
    asio::steady_timer deadline(executor);
    deadline.expires_after(request.timeout);
    for (;;) {
        const bool reused = work != nullptr;
        ResponseParser parser(request.method == "HEAD");
        if (on_chunk) parser.stream_to(on_chunk);
        auto done = co_await attempt(request, parser, deadline, static_cast<bool>(on_chunk));
        const bool timed_out = work && work->timed_out;
        if (!done) {
            drop();
            // The server may have closed the kept connection just as this request was on its way.
            const bool again = reused && !parser.begun() && !timed_out && may_repeat(request) &&
                               done.error().code == ErrorCode::kUnavailable;
            if (again) continue;
            co_return std::unexpected(std::move(done.error()));
        }
        if (parser.unwanted() || !parser.keep_alive()) drop();
        co_return parser.take();
    }
}

Client::Client(asio::any_io_executor executor, std::string base_url, std::shared_ptr<Credentials> credentials)
    : impl_(std::make_unique<Impl>(std::move(executor), std::move(base_url), std::move(credentials))) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

asio::awaitable<Result<ClientResponse>> Client::send(ClientRequest request) {
    return impl_->exchange(std::move(request), {});
}

asio::awaitable<Result<ClientResponse>> Client::stream(ClientRequest request,
                                                       std::function<bool(std::string_view)> on_chunk) {
    return impl_->exchange(std::move(request), std::move(on_chunk));
}

}  // namespace memtide::http
