#include "tests/bench/tiering/resp.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace memtide::bench {
namespace {

constexpr std::size_t kReadAtOnce = 64 << 10;
constexpr timeval kPatience{.tv_sec = 60, .tv_usec = 0};

Result<int> connect_once(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail(ErrorCode::kInvalidArgument, path + " is too long for a unix socket");
    std::memcpy(address.sun_path, path.data(), path.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail_errno("make", "a socket", errno);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    const int error = errno;
    close(fd);
    return fail_errno("connect to", path, error);
}

}  // namespace

void append_command(std::string& out, std::initializer_list<std::string_view> words) {
    fmt::format_to(std::back_inserter(out), "*{}\r\n", words.size());
    for (const std::string_view word : words)
        fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", word.size(), word);
}

Result<std::optional<Reply>> take_reply(std::string_view& bytes) {
    const std::size_t end = bytes.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = bytes.substr(0, end);
    if (line.empty()) return fail(ErrorCode::kProtocol, "an empty line is no answer");
    const std::string_view text = line.substr(1);
    const auto simple = [&](Reply::Kind kind) -> std::optional<Reply> {
        Reply reply{kind, std::string(text)};
        bytes.remove_prefix(end + 2);
        return reply;
    };
    switch (line.front()) {
        case '+':
            return simple(Reply::Kind::kStatus);
        case '-':
            return simple(Reply::Kind::kError);
        case ':':
            return simple(Reply::Kind::kInteger);
        case '$':
            break;
        default:
            return fail(ErrorCode::kProtocol, fmt::format("no answer begins with \"{}\"", line.front()));
    }
    long long size = 0;
    const auto [last, error] = std::from_chars(text.begin(), text.end(), size);
    if (error != std::errc() || last != text.end() || size < -1 || size > (512LL << 20))
        return fail(ErrorCode::kProtocol, fmt::format("\"{}\" is no size", text));
    if (size == -1) return simple(Reply::Kind::kNull);
    const auto length = static_cast<std::size_t>(size);
    if (bytes.size() < end + 2 + length + 2) return std::nullopt;
    if (bytes.substr(end + 2 + length, 2) != "\r\n")
        return fail(ErrorCode::kProtocol, "a string is longer than it says");
    Reply reply{Reply::Kind::kBulk, std::string(bytes.substr(end + 2, length))};
    bytes.remove_prefix(end + 2 + length + 2);
    return reply;
}

Result<RespClient> RespClient::connect(const std::string& path, std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    std::string why;
    do {
        if (const auto fd = connect_once(path)) {
            RespClient client(*fd);
            client.queue({"PING"});
            const auto sent = client.flush();
            const auto answer = sent ? client.read() : Result<Reply>(std::unexpected(sent.error()));
            if (answer) return client;
            why = answer.error().message;
        } else {
            why = fd.error().message;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    } while (std::chrono::steady_clock::now() < until);
    return fail(ErrorCode::kUnavailable, "no Redis server: " + why);
}

RespClient::RespClient(RespClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      out_(std::move(other.out_)),
      in_(std::move(other.in_)),
      taken_(other.taken_) {}

RespClient::~RespClient() {
    if (fd_ >= 0) close(fd_);
}

Result<> RespClient::flush() {
    for (std::string_view rest = out_; !rest.empty();) {
        const ssize_t sent = send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return fail_errno("write to", "the Redis server", errno);
        rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    out_.clear();
    return {};
}

Result<Reply> RespClient::read() {
    while (true) {
        std::string_view rest = std::string_view(in_).substr(taken_);
        auto reply = take_reply(rest);
        if (!reply) return std::unexpected(reply.error());
        taken_ = in_.size() - rest.size();
        if (*reply) {
            if ((*reply)->kind == Reply::Kind::kError)
                return fail(ErrorCode::kProtocol, "Redis says: " + (*reply)->text);
            return std::move(**reply);
        }
        in_.erase(0, taken_);
        taken_ = 0;
        const std::size_t had = in_.size();
        in_.resize(had + kReadAtOnce);
        const ssize_t got = recv(fd_, in_.data() + had, kReadAtOnce, 0);
        const int error = errno;
        in_.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
        if (got == 0) return fail(ErrorCode::kUnavailable, "the Redis server has gone");
        if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK))
            return fail(ErrorCode::kTimeout, "the Redis server does not answer");
        if (got < 0 && error != EINTR) return fail_errno("read from", "the Redis server", error);
    }
}

}  // namespace memtide::bench
