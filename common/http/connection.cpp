#include "common/http/connection.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/format.h>

#include "common/base/no_throw.h"
#include "common/http/encode.h"
#include "common/log/log.h"

namespace memtide::http {

namespace asio = boost::asio;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kSmallBuffer = 4 << 10;  // of a connection that is idle: there may be thousands
constexpr std::size_t kLargeBuffer = 64 << 10;
constexpr milliseconds kLingerTime{2000};
constexpr std::size_t kLingerBytes = 64U << 20;
constexpr milliseconds kLookInterval{500};

// "127.0.0.1:40312", "[::1]:40312"; "unix" for other families.
std::string name_of_peer(const Connection::Socket& socket) {
    boost::system::error_code error;
    const auto remote = socket.remote_endpoint(error);
    const int family = error ? AF_UNSPEC : remote.protocol().family();
    if (family != AF_INET && family != AF_INET6) return "unix";
    asio::ip::tcp::endpoint endpoint;
    if (remote.size() > endpoint.capacity()) return "unknown";
    std::memcpy(endpoint.data(), remote.data(), remote.size());
    return family == AF_INET6 ? fmt::format("[{}]:{}", endpoint.address().to_string(), endpoint.port())
                              : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

// What went wrong in a handler is for the log, not for the client.
Response explain_fault(const std::exception& fault, std::string_view request, std::string_view peer) {
    log::error("handler failed", {{"request", request}, {"peer", peer}, {"error", fault.what()}});
    return problem(500, "internal-error", "the server failed to answer; its log says why");
}

}  // namespace

// --- Life ---

Connection::Connection(std::shared_ptr<Hub> hub, Socket socket, bool surplus)
    : hub_(std::move(hub)),
      stream_(std::move(socket)),
      peer_(name_of_peer(stream_.socket())),
      surplus_(surplus) {
    boost::system::error_code ignored;
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    stream_.socket().non_blocking(true, ignored);
    // A new connection that says nothing has no more patience than a slow one.
    enter(Phase::kIdle, hub_->limits.request_timeout);
    hub_->add(*this);
}

Connection::~Connection() { hub_->remove(*this); }

void Connection::start(const std::shared_ptr<Connection>& connection) {
    const auto on_end = [connection](const std::exception_ptr& fault) {
        connection->close();
        if (!fault || connection->cancelled_) return;
        try {
            std::rethrow_exception(fault);
        } catch (const std::exception& error) {
            log::error("connection failed", {{"peer", connection->peer_}, {"error", error.what()}});
        }
    };
    asio::co_spawn(connection->hub_->executor, connection->run(),
                   asio::bind_cancellation_slot(connection->cancellation_.slot(), on_end));
}

// --- TLS ---

void Connection::secure(const std::shared_ptr<tls::ServerContext>& context) {
    tls_ = context;
    trust_ = context->generation();
    stream_.secure(context->make_session(stream_.socket().native_handle()));
}

asio::awaitable<bool> Connection::begin_tls() {
    const auto error = co_await stream_.handshake();
    if (!error) {
        certificate_ = stream_.session()->peer();
        co_return true;
    }
    if (error != asio::error::connection_aborted) co_return false;  // closed, by us or by them
    tls::Session& session = *stream_.session();
    if (hub_->security.on_failed_handshake) hub_->security.on_failed_handshake(peer_, session.failure());
    if (!session.was_plain_http()) {
        co_await linger();  // the alert that says why is on its way
        co_return false;
    }
    stream_.secure(nullptr);
    const std::string text =
        encode(problem(400, "tls-required", "this address speaks TLS: use https:// in place of http://"),
               false, false);
    if (co_await write(text)) co_await linger();
    co_return false;
}

// The certificates that clients are let in by have been read again since: it must show its own once more.
bool Connection::trust_is_old() const { return certificate_ != nullptr && tls_->generation() != trust_; }

asio::awaitable<void> Connection::run() {
    if (tls_ && !co_await begin_tls()) co_return;
    if (surplus_) {
        const std::string text =
            encode(problem(503, "too-many-connections",
                           fmt::format("{} connections are open; try again later", hub_->connection_count())),
                   false, false);
        if (co_await write(text)) co_await linger();
        co_return;
    }
    for (;;) {
        RequestParser parser(hub_->limits.header_bytes, hub_->limits.body_bytes);
        const Outcome outcome = co_await receive(parser);
        if (outcome == Outcome::kClose) co_return;
        if (outcome == Outcome::kRefuse) {
            const Response& refusal =
                timed_out_ ? problem(408, "request-timeout", "the request was not complete in time")
                           : parser.refusal();
            const std::string text = encode(refusal, false, false);
            if (co_await write(text)) co_await linger();
            co_return;
        }
        if (!co_await serve(parser)) break;
        enter(Phase::kIdle, hub_->limits.idle_timeout);
    }
    co_await linger();
}

// --- Receiving ---

asio::awaitable<Connection::Outcome> Connection::receive(RequestParser& parser) {
    for (;;) {
        if (begin_ != end_) {
            std::string_view bytes = received();
            const auto state = parser.feed(bytes);
            begin_ = end_ - bytes.size();
            if (state == RequestParser::State::kComplete) co_return Outcome::kRequest;
            if (state == RequestParser::State::kFailed) co_return Outcome::kRefuse;
            if (state == RequestParser::State::kNeedsContinue)
                if (!co_await write("HTTP/1.1 100 Continue\r\n\r\n")) co_return Outcome::kClose;
        }
        // The deadline is that of the whole request: dripping bytes does not move it.
        if (phase_ == Phase::kIdle && parser.begun()) enter(Phase::kReading, hub_->limits.request_timeout);
        if (hub_->stopping && phase_ == Phase::kIdle) co_return Outcome::kClose;
        if (!co_await fill()) co_return timed_out_ ? Outcome::kRefuse : Outcome::kClose;
    }
}

// `buffer_ = {}` would assign an empty list, and keep the memory.
void Connection::free_buffer() {
    std::vector<char>().swap(buffer_);
    begin_ = end_ = 0;
}

// Waits for more bytes; false when there are none to come.
asio::awaitable<bool> Connection::fill() {
    if (begin_ == end_) {
        begin_ = end_ = 0;
        if (phase_ == Phase::kIdle) free_buffer();
    } else if (begin_ > 0 && end_ == buffer_.size()) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= std::exchange(begin_, 0);
    }
    if (buffer_.empty()) {
        // Most connections are silent most of the time: those need no memory for what may come.
        const auto silent = co_await stream_.wait_readable();
        if (silent || timed_out_) co_return false;
        buffer_.resize(kSmallBuffer);
    }
    // Someone who fills the buffer has more to say. The parser bounds what stays in it.
    if (end_ == buffer_.size() || (last_read_filled_ && buffer_.size() < kLargeBuffer))
        buffer_.resize(std::max(buffer_.size() * 2, kLargeBuffer));
    const std::size_t room = buffer_.size() - end_;
    const auto [error, got] = co_await stream_.read_some(asio::buffer(buffer_.data() + end_, room));
    if (error || timed_out_) co_return false;
    end_ += got;
    last_read_filled_ = got == room;
    co_return true;
}

// --- Answering ---

// False: the connection ends here.
asio::awaitable<bool> Connection::serve(RequestParser& parser) {
    const bool may_chunk = parser.may_chunk();
    bool keep_alive = parser.keep_alive();
    Request request = parser.take();
    if (begin_ == end_) free_buffer();  // a long poll may take minutes
    request.peer = peer_;
    request.certificate = certificate_;
    const bool head_only = request.method == "HEAD";
    may_cancel_ = head_only || request.method == "GET";
    enter(Phase::kHandling);
    Response response = co_await answer(std::move(request));
    if (response.stream && !head_only)
        co_return co_await stream(std::move(response), may_chunk) && keep_alive;
    keep_alive = keep_alive && !hub_->stopping && !trust_is_old();
    std::string text;
    if (response.stream)
        text = encode_head(response, may_chunk ? Framing::kChunked : Framing::kToEnd, keep_alive);
    else
        text = encode(response, head_only, keep_alive);
    co_return co_await write(text) && keep_alive;
}

asio::awaitable<Response> Connection::answer(Request request) {
    const std::string what = fmt::format("{} {}", request.method, request.path);
    try {
        co_return co_await hub_->router.dispatch(std::move(request));
    } catch (const std::exception& fault) {
        if (cancelled_) throw;
        co_return explain_fault(fault, what, peer_);
    }
}

class Connection::ChunkWriter : public StreamWriter {
  public:
    ChunkWriter(Connection& connection, bool chunked) : connection_(connection), chunked_(chunked) {}
    asio::awaitable<Result<>> write(std::string chunk) override {
        if (chunk.empty()) co_return Result<>{};  // would end the body
        const std::string text = chunked_ ? encode_chunk(chunk) : std::move(chunk);
        const bool written = co_await connection_.write(text);
        connection_.enter(Phase::kStreaming);
        if (!written) co_return fail(ErrorCode::kUnavailable, "write to stream: the client is gone");
        co_return Result<>{};
    }

  private:
    Connection& connection_;
    bool chunked_;
};

asio::awaitable<bool> Connection::stream(Response response, bool may_chunk) {
    const Framing framing = may_chunk ? Framing::kChunked : Framing::kToEnd;
    const std::string head = encode_head(response, framing, !hub_->stopping);
    if (!co_await write(head)) co_return false;
    may_cancel_ = true;
    enter(Phase::kStreaming);
    ChunkWriter writer(*this, may_chunk);
    try {
        co_await response.stream(writer);
    } catch (const std::exception& fault) {
        // The client must not take what it has for the whole: no last chunk, the connection ends.
        if (!cancelled_) explain_fault(fault, "stream", peer_);
        throw;
    }
    if (cancelled_ || !may_chunk) co_return false;
    co_return co_await write(kLastChunk);
}

asio::awaitable<bool> Connection::write(std::string_view text) {
    boost::system::error_code error;
    const std::size_t put = stream_.write_now(text, error);
    if (!error && put == text.size()) co_return true;  // as nearly always: no need to wait for anything
    if (error && error != asio::error::would_block) co_return false;
    enter(Phase::kWriting, hub_->limits.write_timeout);
    co_return !co_await stream_.write(text.substr(put));
}

// A close while bytes are unread resets the connection, and a client that is still sending would never see
// the answer. So: no more from us, but read on until it ends, or for a moment.
asio::awaitable<void> Connection::linger() {
    boost::system::error_code error;
    stream_.shutdown_send(error);
    if (error || hub_->stopping) co_return;
    enter(Phase::kLingering, kLingerTime);
    buffer_.resize(kLargeBuffer);
    for (std::size_t total = 0; total < kLingerBytes;) {
        // Of TLS, too, only the bytes count.
        const auto [failed, got] = co_await stream_.socket().async_read_some(asio::buffer(buffer_), kNoThrow);
        if (failed) co_return;
        total += got;
    }
}

// --- For the hub ---

void Connection::enter(Phase phase, milliseconds limit) {
    phase_ = phase;
    since_ = Clock::now();
    deadline_ = limit == milliseconds::max() ? Clock::time_point::max() : since_ + limit;
    next_look_ = since_ + kLookInterval;
}

void Connection::enforce_deadline(Clock::time_point now) {
    if (now < deadline_) return;
    if (phase_ != Phase::kReading) return close();
    timed_out_ = true;
    boost::system::error_code ignored;
    stream_.socket().cancel(ignored);
}

bool Connection::wants_watching(Clock::time_point now) {
    const bool at_work = (phase_ == Phase::kHandling && may_cancel_) || phase_ == Phase::kStreaming;
    if (!at_work || cancelled_ || now < next_look_ || !stream_.is_open()) return false;
    next_look_ = now + kLookInterval;
    return true;
}

void Connection::client_is_gone() { cancel_handler(); }

void Connection::cancel_handler() {
    if (std::exchange(cancelled_, true)) return;
    cancellation_.emit(asio::cancellation_type::terminal);
}

void Connection::finish_soon() {
    if (phase_ == Phase::kStreaming) cancel_handler();
    if (phase_ == Phase::kIdle || phase_ == Phase::kReading || phase_ == Phase::kLingering) close();
}

void Connection::abandon() {
    cancel_handler();
    close();
}

void Connection::close() { stream_.close(); }

}  // namespace memtide::http
