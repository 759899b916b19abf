#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "common/base/error.h"
#include "common/http/client.h"

namespace memtide::http {

// Turns the bytes of one response into a ClientResponse; no I/O.
class ResponseParser {
  public:
    // `head`: it answers HEAD, and has no body whatever its header says.
    explicit ResponseParser(bool head);
    ~ResponseParser();

    enum class State { kNeedMore, kComplete };
    // Takes bytes from the front of `bytes`. kProtocol when they are not HTTP or larger than the limits.
    Result<State> feed(std::string_view& bytes);
    // The connection has ended. kUnavailable when the response was not complete.
    Result<State> end();

    // Gives the body of a 2xx response to `on_chunk` as it comes instead of keeping it.
    void stream_to(std::function<bool(std::string_view)> on_chunk);

    [[nodiscard]] bool begun() const;       // saw at least one byte
    [[nodiscard]] bool has_header() const;  // status and headers are known
    [[nodiscard]] bool keep_alive() const;  // valid once complete
    [[nodiscard]] bool unwanted() const;    // on_chunk wants no more
    ClientResponse take();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace memtide::http
