#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "common/base/error.h"
#include "common/fmapi/message.h"
#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/fmapi/connection.h"
#include "fabric-manager/fmapi/turn_queue.h"

namespace memtide::fm {

// Exchanges messages with one switch: one request in flight, connecting when needed, matching answers to
// requests. Owned by shared_ptr, because calls in flight keep it alive. Not thread safe.
class Session : public std::enable_shared_from_this<Session> {
  public:
    Session(boost::asio::any_io_executor executor, SwitchAddress address, ClientOptions options);

    // Sends a request with this opcode and payload and returns the response to it, whatever its return code.
    // Errors as in FmApiClient. The tag is chosen here.
    // With `connection`: over that one or not at all (kUnavailable).
    static boost::asio::awaitable<Result<fmapi::Message>> exchange(
        std::shared_ptr<Session> self, fmapi::Opcode opcode, fmapi::Payload payload,
        std::optional<std::uint64_t> connection = std::nullopt);

    // How many connections have been opened so far.
    [[nodiscard]] std::uint64_t connections() const { return connections_; }

    // See FmApiClient.
    void on_notification(std::function<void()> handler) { notify_ = std::move(handler); }

    // Calls made before end with kCancelled.
    void close();

    [[nodiscard]] const std::string& address() const { return options_.address; }

  private:
    boost::asio::awaitable<Result<fmapi::Message>> exchange_in_turn(const fmapi::Message& request);
    boost::asio::awaitable<Result<>> connect();
    boost::asio::awaitable<Result<fmapi::Message>> receive_answer(const fmapi::Message& request);
    void note_timeout();
    bool note_unasked(const fmapi::Message& message);
    void watch();
    void watch_now();
    void take_in();
    void take_what_came();

    SwitchAddress address_;
    ClientOptions options_;
    Connection connection_;
    TurnQueue turns_;
    std::uint8_t last_tag_ = 0;
    bool exchanging_ = false;
    unsigned timeouts_in_a_row_ = 0;
    std::uint64_t closings_ = 0;
    std::uint64_t connections_ = 0;
    std::function<void()> notify_;
    bool watching_ = false;
    boost::asio::steady_timer watch_timer_;
};

}  // namespace memtide::fm
