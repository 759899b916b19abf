#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/cancellation_signal.hpp>

#include "common/http/hub.h"
#include "common/http/message.h"
#include "common/http/request_parser.h"
#include "common/http/stream.h"

namespace memtide::http {

// One client's connection, from accept to close. Kept alive by its own coroutine.
class Connection : public std::enable_shared_from_this<Connection> {
  public:
    using Socket = Stream::Socket;
    using Clock = std::chrono::steady_clock;

    // `surplus`: over the limit; is told so and closed.
    Connection(std::shared_ptr<Hub> hub, Socket socket, bool surplus);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // Speaks TLS. Before start().
    void secure(const std::shared_ptr<tls::ServerContext>& context);
    // Serves requests until the connection ends.
    static void start(const std::shared_ptr<Connection>& connection);

    // --- For the hub ---
    void enforce_deadline(Clock::time_point now);
    // A handler has been at work for a while: is its client still there?
    bool wants_watching(Clock::time_point now);
    void client_is_gone();
    void finish_soon();
    void abandon();
    void close();
    [[nodiscard]] bool surplus() const { return surplus_; }
    [[nodiscard]] bool idle() const { return phase_ == Phase::kIdle && stream_.is_open() && !surplus_; }
    [[nodiscard]] Clock::time_point since() const { return since_; }
    [[nodiscard]] int descriptor() { return stream_.socket().native_handle(); }

  private:
    enum class Phase {
        kIdle,       // between requests: ended by the idle timeout or by a newcomer who needs the place
        kReading,    // has begun a request: ended with 408 by the request timeout
        kHandling,   // a handler is at work
        kStreaming,  // so is the writer of a stream
        kWriting,    // a client that does not read is dropped
        kLingering,  // reads on for a moment, so that the client gets to see why it was refused
    };
    enum class Outcome { kRequest, kRefuse, kClose };

    boost::asio::awaitable<void> run();
    boost::asio::awaitable<bool> begin_tls();
    [[nodiscard]] bool trust_is_old() const;
    boost::asio::awaitable<Outcome> receive(RequestParser& parser);
    boost::asio::awaitable<bool> serve(RequestParser& parser);
    boost::asio::awaitable<Response> answer(Request request);
    boost::asio::awaitable<bool> stream(Response response, bool may_chunk);
    boost::asio::awaitable<bool> write(std::string_view text);
    boost::asio::awaitable<bool> fill();
    void free_buffer();
    boost::asio::awaitable<void> linger();
    void enter(Phase phase, std::chrono::milliseconds limit = std::chrono::milliseconds::max());
    void cancel_handler();
    [[nodiscard]] std::string_view received() const { return {buffer_.data() + begin_, end_ - begin_}; }

    class ChunkWriter;

    const std::shared_ptr<Hub> hub_;
    Stream stream_;
    std::shared_ptr<tls::ServerContext> tls_;  // null: in the clear
    std::uint64_t trust_ = 0;                  // its generation when the client was let in
    std::shared_ptr<const tls::PeerCertificate> certificate_;
    boost::asio::cancellation_signal cancellation_;
    const std::string peer_;
    const bool surplus_;
    Phase phase_ = Phase::kIdle;
    Clock::time_point since_;
    Clock::time_point deadline_;
    Clock::time_point next_look_;
    bool timed_out_ = false;
    bool cancelled_ = false;
    bool may_cancel_ = false;  // the handler at work only looks
    bool last_read_filled_ = false;
    std::vector<char> buffer_;
    std::size_t begin_ = 0;  // what was received and not parsed is [begin_, end_)
    std::size_t end_ = 0;
};

}  // namespace memtide::http
