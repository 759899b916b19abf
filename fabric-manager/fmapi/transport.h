#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/fmapi/capture/session_capture.h"
#include "common/fmapi/mctp.h"
#include "common/fmapi/wire_format.h"

namespace memtide::fm {

struct SwitchAddress;
struct SwitchListener;

// What carries whole messages to one switch and back: a stream, a device file, an MCTP socket. Everything
// runs on one executor, one handler at a time. Not thread safe.
class Transport {
  public:
    using TimePoint = std::chrono::steady_clock::time_point;

    // Who uses it. All are called on the executor, never from within a call to the transport.
    struct User {
        std::function<void(fmapi::MctpMessage&&)> received;
        // The connection is gone, and closed: kUnavailable when the switch ended it, kProtocol when what it
        // sends makes no sense. Not called for close().
        std::function<void(Error)> lost;
        // The request with this tag did not get as far as the switch, and the connection is as good as
        // before.
        std::function<void(std::uint8_t tag, Error)> refused;
    };

    virtual ~Transport() = default;

    void set_user(User user) { user_ = std::move(user); }

    // Closes what is open and connects, in this format where it has a choice. kUnavailable when there is
    // nobody, kTimeout at the deadline, kCancelled when the caller or close() ends it.
    virtual boost::asio::awaitable<Result<>> open(TimePoint deadline, const fmapi::WireFormat& format) = 0;
    // The switch turned out to write headers in another form.
    virtual void set_header_form(const fmapi::HeaderForm&) {}
    // Sends it soon, whole, or loses the connection.
    virtual void send(const fmapi::MctpMessage& message) = 0;
    [[nodiscard]] virtual bool is_open() const = 0;
    // Looks whether the switch has ended the connection meanwhile, and then closes it.
    virtual bool still_open() { return is_open(); }
    virtual void close() = 0;

    // Whether framings and header forms mean anything here: whether there is a dialect to find out.
    [[nodiscard]] virtual bool has_formats() const { return true; }
    // Whether what was sent may get lost without the connection getting lost.
    [[nodiscard]] virtual bool loses_messages() const { return false; }

  protected:
    [[nodiscard]] const User& user() const { return user_; }

  private:
    User user_;
};

// The one for this kind of address. What is no stream is captured as if it were one, of packets as the
// specification has them.
std::unique_ptr<Transport> make_transport(const boost::asio::any_io_executor& executor,
                                          const SwitchAddress& address, fmapi::SwitchCapture capture = {});
// One to which the switch connects. Listens from here on: kAlreadyExists when the address is in use.
Result<std::unique_ptr<Transport>> listen_for_switch(const boost::asio::any_io_executor& executor,
                                                     const SwitchListener& where,
                                                     fmapi::SwitchCapture capture = {});

}  // namespace memtide::fm
