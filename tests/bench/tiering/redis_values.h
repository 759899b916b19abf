#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "common/base/error.h"
#include "tests/bench/tiering/resp.h"

namespace memtide::bench {

// Where Redis keeps values: DEBUG OBJECT tells the address of a value's object, whose second word (server.h
// of Redis 7.0: struct redisObject) points to the string. Needs `enable-debug-command yes`, and to read
// /proc/PID/mem.

// The address in the answer to DEBUG OBJECT ("Value at:0x7f12... refcount:1 encoding:raw ..."); nothing for
// any other text, and for encodings that keep the string elsewhere.
std::optional<std::uint64_t> object_address(std::string_view answer);

struct ValueSpan {
    std::uint64_t address = 0;  // of its first byte
    std::uint64_t bytes = 0;
};

// Share of the accesses to a value that fall on each page that has some of it: its share of the bytes. Adds
// `share` in total, by page number (address / 4096).
void add_pages(const ValueSpan& value, double share, std::map<std::uint64_t, double>& pages);

class RedisValues {
  public:
    // Values have that many bytes.
    static Result<RedisValues> open(RespClient& client, pid_t server, std::uint64_t value_bytes);
    RedisValues(RedisValues&& other) noexcept;
    RedisValues& operator=(RedisValues&&) = delete;
    ~RedisValues();

    // Where the values of these keys are, in their order.
    Result<std::vector<ValueSpan>> find(const std::vector<std::string>& keys);

  private:
    RedisValues(RespClient& client, int memory, std::uint64_t value_bytes)
        : client_(client), memory_(memory), value_bytes_(value_bytes) {}
    RespClient& client_;
    int memory_;
    std::uint64_t value_bytes_;
};

// Node of each of these pages (numbers) of a process; negative for one that is not there.
Result<std::vector<int>> nodes_of(pid_t pid, const std::vector<std::uint64_t>& pages);

}  // namespace memtide::bench
