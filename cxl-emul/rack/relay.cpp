#include "cxl-emul/rack/relay.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cxl-emul/rack/loopback_address.h"

namespace memtide::emul {
namespace {

bool write_all(int fd, const char* data, std::size_t size) {
    while (size > 0) {
        const auto written = ::write(fd, data, size);
        if (written < 0 && (errno == EINTR || errno == EAGAIN)) {
            pollfd wait{fd, POLLOUT, 0};
            ::poll(&wait, 1, -1);
            continue;
        }
        if (written <= 0) return false;
        data += written;
        size -= static_cast<std::size_t>(written);
    }
    return true;
}

// Moves what there is from one to the other; false at the end of either.
bool move_some(int from, int to) {
    std::array<char, 64 << 10> buffer{};
    const auto size = ::read(from, buffer.data(), buffer.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    return size > 0 && write_all(to, buffer.data(), static_cast<std::size_t>(size));
}

}  // namespace

int run_relay(const std::string& address) {
    std::signal(SIGPIPE, SIG_IGN);
    const auto target = parse_loopback_address(address);
    if (!target) {
        std::cerr << "memtide-cxl-emul relay: " << target.error().message << '\n';
        return 2;
    }
    const int peer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(target->port);
    ::inet_pton(AF_INET, target->host.c_str(), &to.sin_addr);
    if (peer < 0 || ::connect(peer, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return 1;
    const int yes = 1;
    ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);

    bool to_peer = true;
    bool to_guest = true;
    while (to_peer || to_guest) {
        std::array<pollfd, 2> wait{
            {{to_peer ? STDIN_FILENO : -1, POLLIN, 0}, {to_guest ? peer : -1, POLLIN, 0}}};
        if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return 1;
        if (to_peer && wait[0].revents != 0 && !move_some(STDIN_FILENO, peer)) {
            to_peer = false;
            ::shutdown(peer, SHUT_WR);
        }
        if (to_guest && wait[1].revents != 0 && !move_some(peer, STDOUT_FILENO)) {
            // The manager has said all it will; QEMU closes the guest's side when we end.
            return 0;
        }
    }
    return 0;
}

}  // namespace memtide::emul
