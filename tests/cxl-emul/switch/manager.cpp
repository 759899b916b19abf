#include "tests/cxl-emul/switch/manager.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cxl-emul/switch/endpoint.h"

namespace memtide::emul::test {
namespace {

constexpr time_t kDeadlineSeconds = 30;

int connect_to(const Endpoint& endpoint) {
    const bool tcp = endpoint.kind == Endpoint::Kind::kTcp;
    const int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval deadline{.tv_sec = kDeadlineSeconds, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof(deadline));
    int status = -1;
    if (tcp) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(endpoint.port);
        inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr);
        status = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    } else {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, endpoint.path.c_str(), sizeof(address.sun_path) - 1);
        status = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    }
    if (status == 0) return fd;
    const int error = errno;
    close(fd);
    throw std::runtime_error("connect to " + format_endpoint(endpoint) + ": " + std::strerror(error));
}

template <typename Status>
fmapi::ReturnCode poll_until_ended(Status&& status) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kDeadlineSeconds);
    while (std::chrono::steady_clock::now() < deadline) {
        const fmapi::BackgroundOperationStatusResponse now = status();
        if (!now.running()) return now.return_code;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("a background operation does not end");
}

}  // namespace

Manager::Manager(const std::string& address, const fmapi::WireFormat& format)
    : fd_(connect_to(parse_endpoint(address).value())), format_(format), assembler_(format) {}
Manager::~Manager() { close(fd_); }

void Manager::send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0) throw std::runtime_error(std::string("send: ") + std::strerror(errno));
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
}

void Manager::send(const fmapi::Message& request, fmapi::MctpType type) {
    send(fmapi::to_packets({.route = {}, .type = type, .message = request}, format_));
}

std::optional<std::vector<std::byte>> Manager::read_some() {
    std::array<std::byte, 4096> buffer;
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return std::nullopt;
    if (got < 0) throw std::runtime_error(std::string("receive: ") + std::strerror(errno));
    return std::vector<std::byte>(buffer.begin(), buffer.begin() + got);
}

fmapi::MctpMessage Manager::receive() {
    while (true) {
        auto next = assembler_.next();
        if (!next) throw std::runtime_error(next.error().message);
        if (*next) return **next;
        const auto bytes = read_some();
        if (!bytes) throw std::runtime_error("the switch closed the connection");
        assembler_.feed(*bytes);
    }
}

bool Manager::is_dropped() { return !read_some(); }

void Manager::close_sending() { shutdown(fd_, SHUT_WR); }

fmapi::Message Manager::call(fmapi::Opcode opcode, fmapi::Payload payload) {
    const std::uint8_t tag = ++tag_;
    send(fmapi::make_request(opcode, tag, std::move(payload)));
    fmapi::MctpMessage answer = receive();
    if (!answer.message.is_response || answer.message.tag != tag || answer.message.opcode != opcode)
        throw std::runtime_error("not the answer: " + fmapi::to_string(answer.message));
    return answer.message;
}

fmapi::Message Manager::call_device(std::uint8_t port, const fmapi::Message& request, fmapi::MctpType type) {
    const auto answer = get<fmapi::TunnelManagementCommand>({.id = port,
                                                             .target = fmapi::TunnelTarget::kPort,
                                                             .type = type,
                                                             .command = fmapi::encode_message(request)});
    return fmapi::decode_message(answer.response).value();
}

fmapi::Message Manager::call_ld(std::uint8_t port, std::uint8_t ld, const fmapi::Message& request,
                                fmapi::MctpType type) {
    const fmapi::TunnelRequest inner{.id = ld,
                                     .target = fmapi::TunnelTarget::kLd,
                                     .type = type,
                                     .command = fmapi::encode_message(request)};
    const auto answer = decode_success<fmapi::TunnelResponse>(call_device(
        port, fmapi::make_request(fmapi::Opcode::kTunnelManagementCommand, 0, fmapi::encode(inner))));
    return fmapi::decode_message(answer.response).value();
}

fmapi::ReturnCode Manager::wait_for_background() {
    return poll_until_ended([this] { return background(); });
}

fmapi::ReturnCode Manager::wait_for_ld(std::uint8_t port, std::optional<std::uint8_t> ld) {
    const auto request = fmapi::make_request(fmapi::Opcode::kBackgroundOperationStatus, 0);
    return poll_until_ended([&] {
        const fmapi::Message answer =
            ld ? call_ld(port, *ld, request) : call_device(port, request, fmapi::MctpType::kCci);
        return decode_success<fmapi::BackgroundOperationStatusResponse>(answer);
    });
}

fmapi::ReturnCode Manager::bind(std::uint8_t vcs, std::uint8_t vppb, std::uint8_t port, std::uint16_t ld) {
    const auto answer = call<fmapi::BindVppb>({vcs, vppb, port, ld}).return_code;
    return answer == fmapi::ReturnCode::kBackgroundStarted ? wait_for_background() : answer;
}

fmapi::ReturnCode Manager::unbind(std::uint8_t vcs, std::uint8_t vppb, fmapi::UnbindOption option) {
    const auto answer = call<fmapi::UnbindVppb>({vcs, vppb, option}).return_code;
    return answer == fmapi::ReturnCode::kBackgroundStarted ? wait_for_background() : answer;
}

fmapi::Vppb Manager::vppb(std::uint8_t vcs, std::uint8_t vppb) {
    const fmapi::GetVirtualSwitchInfoRequest request{.first_vppb = vppb, .vppb_limit = 1, .vcss = {vcs}};
    const auto answer =
        get<fmapi::GetVirtualSwitchInfo>(request, fmapi::GetVirtualSwitchInfoResponse::answering(request));
    return answer.vcss.at(0).vppbs.at(0);
}

void Manager::expect_success(const fmapi::Message& message) {
    if (message.return_code != fmapi::ReturnCode::kSuccess)
        throw std::runtime_error("refused: " + fmapi::to_string(message));
}

}  // namespace memtide::emul::test
