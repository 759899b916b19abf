#include "tests/bench/tiering/redis_values.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <numaif.h>
#include <unistd.h>

#include "tests/bench/tiering/placement.h"

namespace memtide::bench {
namespace {

constexpr std::size_t kPipelined = 128;
constexpr std::size_t kPagesAtOnce = 4096;
constexpr off_t kPointerAt = 8;  // in struct redisObject

}  // namespace

std::optional<std::uint64_t> object_address(std::string_view answer) {
    constexpr std::string_view kBegin = "Value at:0x";
    if (!answer.starts_with(kBegin) || answer.find(" encoding:raw ") == std::string_view::npos)
        return std::nullopt;
    answer.remove_prefix(kBegin.size());
    std::uint64_t address = 0;
    const auto [end, error] = std::from_chars(answer.begin(), answer.end(), address, 16);
    if (error != std::errc() || end == answer.end() || *end != ' ') return std::nullopt;
    return address;
}

void add_pages(const ValueSpan& value, double share, std::map<std::uint64_t, double>& pages) {
    const std::uint64_t end = value.address + value.bytes;
    for (std::uint64_t at = value.address; at < end;) {
        const std::uint64_t next = std::min(end, (at / kPageBytes + 1) * kPageBytes);
        pages[at / kPageBytes] += share * static_cast<double>(next - at) / static_cast<double>(value.bytes);
        at = next;
    }
}

Result<RedisValues> RedisValues::open(RespClient& client, pid_t server, std::uint64_t value_bytes) {
    const std::string path = fmt::format("/proc/{}/mem", server);
    const int memory = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (memory < 0) return fail_errno("open", path, errno);
    return RedisValues(client, memory, value_bytes);
}

RedisValues::RedisValues(RedisValues&& other) noexcept
    : client_(other.client_), memory_(std::exchange(other.memory_, -1)), value_bytes_(other.value_bytes_) {}

RedisValues::~RedisValues() {
    if (memory_ >= 0) close(memory_);
}

Result<std::vector<ValueSpan>> RedisValues::find(const std::vector<std::string>& keys) {
    std::vector<ValueSpan> values;
    values.reserve(keys.size());
    for (std::size_t first = 0; first < keys.size(); first += kPipelined) {
        const std::size_t count = std::min(kPipelined, keys.size() - first);
        for (std::size_t i = 0; i < count; ++i) client_.queue({"DEBUG", "OBJECT", keys[first + i]});
        if (auto sent = client_.flush(); !sent) return std::unexpected(sent.error());
        for (std::size_t i = 0; i < count; ++i) {
            const auto answer = client_.read();
            if (!answer) return std::unexpected(answer.error());
            const auto object = object_address(answer->text);
            if (!object)
                return fail(ErrorCode::kProtocol,
                            "DEBUG OBJECT does not tell where a value is: " + answer->text);
            std::uint64_t string = 0;
            if (pread(memory_, &string, sizeof string, static_cast<off_t>(*object) + kPointerAt) !=
                sizeof string)
                return fail_errno("read", "the server's memory", errno);
            values.push_back({string, value_bytes_});
        }
    }
    return values;
}

Result<std::vector<int>> nodes_of(pid_t pid, const std::vector<std::uint64_t>& pages) {
    std::vector<int> nodes(pages.size());
    std::vector<void*> batch(kPagesAtOnce);
    for (std::size_t first = 0; first < pages.size(); first += kPagesAtOnce) {
        const std::size_t count = std::min(kPagesAtOnce, pages.size() - first);
        for (std::size_t i = 0; i < count; ++i)
            batch[i] = reinterpret_cast<void*>(pages[first + i] * kPageBytes);
        if (move_pages(pid, count, batch.data(), nullptr, nodes.data() + first, 0) != 0)
            return fail_errno("move_pages", "to find the nodes of pages", errno);
    }
    return nodes;
}

}  // namespace memtide::bench
