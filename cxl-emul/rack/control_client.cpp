#include "cxl-emul/rack/control_client.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cxl-emul/rack/messages.h"
#include "cxl-emul/rack/run_folder.h"

namespace memtide::emul {

Result<ControlClient> ControlClient::connect(const std::string& run_folder) {
    const auto path = RunFolder::control_socket_of(run_folder);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return fail(ErrorCode::kInvalidArgument, "the path of the run folder is too long: " + run_folder);
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail_errno("socket", path, errno);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int why = errno;
        ::close(fd);
        if (why == EACCES || why == EPERM)
            return fail(ErrorCode::kPermission,
                        fmt::format("the rack in {} belongs to another user", run_folder));
        return fail(ErrorCode::kUnavailable,
                    fmt::format("no rack runs in {}; start one with `rack up`", run_folder));
    }
    return ControlClient(fd);
}

ControlClient::ControlClient(ControlClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), parser_(std::move(other.parser_)) {}

ControlClient::~ControlClient() {
    if (fd_ >= 0) ::close(fd_);
}

Result<> ControlClient::send(const Frame& frame) {
    const auto bytes = encode_frame(frame);
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const auto n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(ErrorCode::kUnavailable, "the rack's supervisor is gone");
        sent += static_cast<std::size_t>(n);
    }
    return {};
}

Result<std::optional<Frame>> ControlClient::receive_if_there() {
    std::array<char, 64 << 10> chunk{};
    for (;;) {
        auto frame = parser_.next();
        if (!frame || *frame) return frame;
        const auto n = ::recv(fd_, chunk.data(), chunk.size(), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return std::nullopt;
        if (n <= 0) return fail(ErrorCode::kUnavailable, "the rack's supervisor is gone");
        parser_.feed({chunk.data(), static_cast<std::size_t>(n)});
    }
}

Result<Frame> ControlClient::receive() {
    std::array<char, 64 << 10> chunk{};
    for (;;) {
        auto frame = parser_.next();
        if (!frame) return std::unexpected(frame.error());
        if (*frame) return std::move(**frame);
        const auto n = ::recv(fd_, chunk.data(), chunk.size(), 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(ErrorCode::kUnavailable, "the rack's supervisor is gone");
        parser_.feed({chunk.data(), static_cast<std::size_t>(n)});
    }
}

Result<boost::json::object> ControlClient::ask(const boost::json::object& message, const Progress& progress) {
    auto sent = send(request(1, message));
    if (!sent) return std::unexpected(sent.error());
    for (;;) {
        auto frame = receive();
        if (!frame) return std::unexpected(frame.error());
        if (frame->type == FrameType::kReply) return read_reply(*frame);
        if (frame->type != FrameType::kProgress || !progress) continue;
        if (const auto told = parse_message(*frame)) progress(*told);
    }
}

}  // namespace memtide::emul
