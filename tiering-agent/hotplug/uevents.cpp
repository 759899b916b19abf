#include "tiering-agent/hotplug/uevents.h"

#include <array>
#include <cerrno>
#include <utility>

#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

namespace memtide::agent {

Result<Uevents> Uevents::open() {
    const int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    if (fd < 0) return fail_errno("open", "netlink uevent socket", errno);
    Uevents uevents(fd);
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = 1;  // the kernel's own events; group 2 is udevd's
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return fail_errno("bind", "netlink uevent socket", errno);
    return uevents;
}

Uevents::~Uevents() {
    if (socket_ >= 0) close(socket_);
}
Uevents::Uevents(Uevents&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
Uevents& Uevents::operator=(Uevents&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
}

bool Uevents::drain() {
    bool concerns = false;
    std::array<char, 8192> buffer{};
    for (;;) {
        const ssize_t got = recv(socket_, buffer.data(), buffer.size(), 0);
        if (got >= 0) {
            concerns |= uevent_concerns_memory({buffer.data(), static_cast<std::size_t>(got)});
        } else if (errno == ENOBUFS) {
            concerns = true;  // events were lost: look anyway
        } else if (errno != EINTR) {
            return concerns;
        }
    }
}

bool uevent_concerns_memory(std::string_view event) {
    while (!event.empty()) {
        const auto end = event.find('\0');
        const std::string_view field = event.substr(0, end);
        if (field == "SUBSYSTEM=cxl" || field == "SUBSYSTEM=dax" || field == "SUBSYSTEM=memory") return true;
        if (end == std::string_view::npos) break;
        event.remove_prefix(end + 1);
    }
    return false;
}

}  // namespace memtide::agent
