#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "common/http/message.h"

namespace memtide::http {

// Turns the bytes of one request into a Request; no I/O. After kComplete or kFailed it is used up.
class RequestParser {
  public:
    RequestParser(std::size_t header_limit, std::size_t body_limit);
    ~RequestParser();
    RequestParser(RequestParser&&) noexcept;
    RequestParser& operator=(RequestParser&&) noexcept;

    enum class State {
        kNeedMore,       // call again with what was left over and more behind it
        kNeedsContinue,  // as kNeedMore; the client waits for "100 Continue" before it sends the body
        kComplete,
        kFailed,
    };
    // Takes bytes from the front of `bytes`; what follows the request stays (pipelining).
    State feed(std::string_view& bytes);

    // Whether it has seen anything of a request.
    [[nodiscard]] bool begun() const;
    // Why it failed, as the answer to give: 400, 413, 417, 431, 505...
    [[nodiscard]] const Response& refusal() const;
    // Valid once complete: does the connection go on after it, and may the response be chunked (HTTP/1.1)?
    [[nodiscard]] bool keep_alive() const;
    [[nodiscard]] bool may_chunk() const;
    // Valid once complete, once; what the parser needed is free then, and nothing else may be called.
    Request take();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace memtide::http
