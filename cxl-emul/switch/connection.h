#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "common/fmapi/capture/session_capture.h"
#include "cxl-emul/switch/listener.h"

namespace memtide::emul {

// How much of a switch its peers may take.
struct ConnectionLimits {
    std::size_t connections = 64;
    // For the rest of a message that has begun, and for an answer to be read.
    std::chrono::milliseconds patience{10'000};
};

// A peer of a switch, and how long it may take. Not thread safe.
class Connection : public std::enable_shared_from_this<Connection> {
  public:
    using Clock = std::chrono::steady_clock;

    // What goes over it is told to `tap`; of what it does not send itself, by its user.
    explicit Connection(StreamSocket socket, fmapi::StreamTap tap = {})
        : socket_(std::move(socket)),
          tap_(std::move(tap)),
          timer_(socket_.get_executor()),
          pause_(socket_.get_executor()),
          last_active_(Clock::now()) {}

    [[nodiscard]] StreamSocket& socket() { return socket_; }
    [[nodiscard]] fmapi::StreamTap& tap() { return tap_; }

    // The peer owes the rest of a message, or has to read an answer: the connection ends unless done() is
    // called in time. A time that runs already goes on, so that a byte now and then buys no more of it.
    void expect_rest(std::chrono::milliseconds time);
    void expect_read(std::chrono::milliseconds time);
    void done();
    // Work of the switch for this peer, under way for as long as `command` lives.
    void works_on(std::weak_ptr<void> command) { command_ = std::move(command); }

    // Whether notify() sends this peer anything; not at first.
    void want_notifications(bool wants) { wants_notifications_ = wants; }
    // Sends `packets`, which nobody asked for: now, or behind the answer that is being sent. A peer that does
    // not read misses it; it has to look by itself.
    void notify(const std::vector<std::byte>& packets);

    // Waits; false when the connection was closed meanwhile.
    boost::asio::awaitable<bool> pause(std::chrono::milliseconds time);

    // No command of the peer is under way.
    [[nodiscard]] bool is_idle() const { return owes_ != Owes::kRead && command_.expired(); }
    [[nodiscard]] Clock::time_point last_active() const { return last_active_; }

    // Ends whatever is under way on the socket. The first reason is the one that counts.
    void close(std::string why);
    [[nodiscard]] const std::string& why_closed() const { return why_closed_; }

  private:
    enum class Owes { kNothing, kRest, kRead };
    void expect(Owes what, std::chrono::milliseconds time, const char* why);

    void send_notification();

    StreamSocket socket_;
    fmapi::StreamTap tap_;
    bool wants_notifications_ = false;
    std::vector<std::byte> notification_;  // not sent yet
    boost::asio::steady_timer timer_;
    boost::asio::steady_timer pause_;
    Clock::time_point last_active_;
    Owes owes_ = Owes::kNothing;
    unsigned debts_ = 0;  // so far: a timer that fires late is recognised by its number
    std::weak_ptr<void> command_;
    std::string why_closed_;
};

// The one that has been idle longest; null when none is idle.
std::shared_ptr<Connection> longest_idle(const std::list<std::shared_ptr<Connection>>& connections);

}  // namespace memtide::emul
