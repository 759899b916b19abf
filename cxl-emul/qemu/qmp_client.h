#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "common/base/error.h"

namespace memtide::emul {

// Client of the QEMU Machine Protocol (QEMU docs/interop/qmp-spec.rst) on a connected stream socket. Runs on
// one single-threaded executor and is used from it only. Commands may overlap: each waits for its own answer.
// Errors: kUnavailable when the connection is or gets closed, kTimeout, kProtocol when the peer does not
// speak QMP (the connection is closed then), kConflict with QEMU's own text when QEMU refuses the command.
class QmpClient {
  public:
    // An event of QEMU, e.g. "GUEST_PANICKED". Called on the executor; must not block.
    using EventHandler = std::function<void(const std::string& name, const boost::json::object& data)>;
    using CloseHandler = std::function<void(const Error& why)>;
    static constexpr std::chrono::milliseconds kDefaultTimeout{20'000};

    // Takes over `connected_socket` (closed by the client).
    QmpClient(boost::asio::any_io_executor executor, int connected_socket);
    ~QmpClient();
    QmpClient(const QmpClient&) = delete;
    QmpClient& operator=(const QmpClient&) = delete;

    // Set before handshake(). The close handler is called once, also after close().
    void on_event(EventHandler handler);
    void on_close(CloseHandler handler);

    // Reads the greeting and leaves negotiation mode; call once, before anything else.
    boost::asio::awaitable<Result<>> handshake(std::chrono::milliseconds timeout = kDefaultTimeout);
    // Runs one command and gives its "return" value.
    boost::asio::awaitable<Result<boost::json::value>> execute(
        std::string command, boost::json::object arguments = {},
        std::chrono::milliseconds timeout = kDefaultTimeout);
    // Runs a line of the human monitor, for what QMP has no command, and gives its output.
    boost::asio::awaitable<Result<std::string>> monitor(std::string line);

    void close();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace memtide::emul
