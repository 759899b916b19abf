#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/fmapi/mctp.h"
#include "fabric-manager/fmapi/address.h"

namespace memtide::fm {

// One stream connection to a switch, with MCTP packets on it. Every operation ends at the deadline set last.
// An operation that fails for another reason than its deadline closes the connection. Not thread safe.
class Connection {
  public:
    using TimePoint = std::chrono::steady_clock::time_point;

    explicit Connection(boost::asio::any_io_executor executor);
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection();

    // Until clear_deadline(): the operations below end with kTimeout when `deadline` passes.
    void set_deadline(TimePoint deadline);
    void clear_deadline();

    // kUnavailable when nobody listens there.
    boost::asio::awaitable<Result<>> open(const SwitchAddress& address);
    // After a failure or cancellation the peer may have got half a packet, so the connection is closed.
    boost::asio::awaitable<Result<>> send(const fmapi::MctpMessage& message);
    // kUnavailable when the peer closed, kProtocol when it sent what is not MCTP. After kTimeout the
    // connection is as good as before: a later receive() goes on where this one stopped.
    boost::asio::awaitable<Result<fmapi::MctpMessage>> receive();

    // Takes in what arrived while nobody was receiving. False when the connection is not open, or was closed
    // or flooded by the peer meanwhile.
    bool still_open();
    // The next message that has been taken in; nullopt when there is none. kProtocol as receive(), and then
    // the connection is closed.
    Result<std::optional<fmapi::MctpMessage>> next();
    // Calls `ready` once, when there is something to take in or the peer has closed; with false when the wait
    // ends for another reason. Only while the connection is open, and one at a time.
    void when_readable(std::function<void(bool readable)> ready);
    [[nodiscard]] bool is_open() const;
    void close();

  private:
    struct Io;  // shared with handlers that may run after this object is gone
    boost::asio::awaitable<Result<>> connect_tcp(const SwitchAddress& address);
    boost::asio::awaitable<Result<>> connect_unix(const SwitchAddress& address);

    std::shared_ptr<Io> io_;
    fmapi::PacketAssembler assembler_;
    bool sending_ = false;
};

}  // namespace memtide::fm
