#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "common/base/error.h"
#include "common/fmapi/dialect.h"
#include "common/fmapi/message.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/fmapi/transport.h"
#include "fabric-manager/fmapi/turn_queue.h"

namespace memtide::fm {

// A request of the session's user, without its tag.
struct Ask {
    fmapi::Opcode opcode{};
    fmapi::Payload payload = {};
    // May be asked again when the answer got lost; of the command in a tunnel, not of the tunnel.
    bool repeatable = false;
    // Over that connection or not at all (kUnavailable).
    std::optional<std::uint64_t> connection = std::nullopt;
};

// Exchanges messages with one switch: connects when needed, finds out its dialect, has as many requests in
// flight as the switch takes, matches answers to requests. Owned by shared_ptr, because calls in flight keep
// it alive. Not thread safe.
class Session : public std::enable_shared_from_this<Session> {
  public:
    Session(boost::asio::any_io_executor executor, std::unique_ptr<Transport> transport,
            ClientOptions options);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Sends a request and returns the response to it, whatever its return code. Errors as in FmApiClient.
    static boost::asio::awaitable<Result<fmapi::Message>> exchange(std::shared_ptr<Session> self, Ask ask);

    // How many connections have been opened so far, those to find out the dialect not counted.
    [[nodiscard]] std::uint64_t connections() const { return connections_; }

    // See FmApiClient.
    void on_notification(std::function<void()> handler) { notify_ = std::move(handler); }
    [[nodiscard]] DialectInUse dialect() const;

    // Calls made before end with kCancelled.
    void close();

    [[nodiscard]] const std::string& address() const { return options_.address; }

  private:
    using Clock = std::chrono::steady_clock;
    struct Pending;      // a request in flight
    class Registration;  // of a Pending among those that wait for answers

    boost::asio::awaitable<Result<fmapi::Message>> exchange_in_turn(const Ask& ask);
    boost::asio::awaitable<Result<>> connect();
    boost::asio::awaitable<Result<>> connect_in_turn();
    boost::asio::awaitable<Result<>> open(const fmapi::WireFormat& format);
    boost::asio::awaitable<Result<>> detect();
    boost::asio::awaitable<Result<>> identify_within(Clock::duration time);
    boost::asio::awaitable<Result<>> assign_endpoint_id();
    boost::asio::awaitable<Result<fmapi::Message>> round_trip(const fmapi::Message& request, bool repeatable,
                                                              Clock::duration timeout);
    boost::asio::awaitable<Result<fmapi::Message>> answer_to(const fmapi::Message& request, bool repeatable,
                                                             Clock::duration timeout);
    void send(const fmapi::Message& request);
    void received(fmapi::MctpMessage&& message);
    void received_control(const fmapi::MctpMessage& message);
    void recognise(const fmapi::MctpMessage& message);
    void note_dialect();
    void lost(const Error& error);
    void fail_all(const Error& error);
    void watch(Clock::time_point due);
    void expire();
    void note_timeout();
    [[nodiscard]] bool keeps_silent_about(const Ask& ask) const;
    [[nodiscard]] std::uint8_t next_tag();
    [[nodiscard]] bool is_ready() const { return ready_ && transport_->is_open(); }

    ClientOptions options_;
    boost::asio::any_io_executor executor_;
    std::unique_ptr<Transport> transport_;
    TurnQueue turns_;
    TurnQueue connecting_;
    std::array<Pending*, 256> by_tag_{};
    std::size_t in_flight_ = 0;
    std::uint8_t last_tag_ = 0;
    boost::asio::steady_timer watchdog_;
    std::optional<Clock::time_point> watched_;  // when the watchdog looks
    unsigned timeouts_in_a_row_ = 0;
    std::uint64_t closings_ = 0;
    std::uint64_t connections_ = 0;
    std::uint8_t own_endpoint_;
    std::function<void()> notify_;

    const fmapi::Dialect* dialect_ = nullptr;  // once it is known
    fmapi::WireFormat format_;                 // of the present connection
    // Of the answer to the Identify that was sent to find out the dialect.
    struct Shape {
        bool opcode_zero = false;
        std::size_t identify_length = 0;
    };
    Shape shape_;
    bool detecting_ = false;
    bool ready_ = false;                             // the connection is one for commands
    std::optional<fmapi::WireFormat> known_format_;  // found out on an earlier connection
    std::optional<std::uint8_t> assigned_;           // endpoint id that the switch took
    // Of a switch that does not answer what it does not know, over this connection:
    std::set<fmapi::Opcode> answered_;
    std::set<fmapi::Opcode> silent_about_;
};

}  // namespace memtide::fm
