#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace memtide {

// For a TCP socket: a peer whose machine or network is gone is noticed within a minute, not never. Failures
// do not matter: a unix socket has none of this. Thread safe.
inline void keep_alive(int fd) {
    constexpr int kYes = 1;
    constexpr int kIdleSeconds = 30;
    constexpr int kIntervalSeconds = 10;
    constexpr int kProbes = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &kYes, sizeof(kYes));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof(kIdleSeconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kIntervalSeconds, sizeof(kIntervalSeconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof(kProbes));
}

}  // namespace memtide
