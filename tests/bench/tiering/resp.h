#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::bench {

// An answer in Redis's protocol (RESP2, redis.io/docs/reference/protocol-spec); arrays are not read.
struct Reply {
    enum class Kind { kStatus, kError, kInteger, kBulk, kNull };
    Kind kind = Kind::kNull;
    std::string text;  // of a status, an error or a bulk string; digits of an integer
};
// The answer that `bytes` begin with, which is cut off there; nothing when it is not whole yet. kProtocol
// when it is none.
Result<std::optional<Reply>> take_reply(std::string_view& bytes);

// A command as an array of bulk strings.
void append_command(std::string& out, std::initializer_list<std::string_view> words);

// A connection to a Redis server, with pipelining: commands are queued, sent together, and answered in order.
// Blocks; for one thread.
class RespClient {
  public:
    // Fails with kUnavailable when nobody answers PING at this unix socket within `limit`.
    static Result<RespClient> connect(const std::string& path, std::chrono::milliseconds limit);
    RespClient(RespClient&& other) noexcept;
    RespClient& operator=(RespClient&&) = delete;
    ~RespClient();

    void queue(std::initializer_list<std::string_view> words) { append_command(out_, words); }
    // Sends what is queued.
    Result<> flush();
    // The next answer; kProtocol for one that says an error, kTimeout after 60 s without one.
    Result<Reply> read();

  private:
    explicit RespClient(int fd) : fd_(fd) {}
    int fd_;
    std::string out_;
    std::string in_;
    std::size_t taken_ = 0;  // of `in_`
};

}  // namespace memtide::bench
