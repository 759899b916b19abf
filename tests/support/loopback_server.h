#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace memtide::test {

// A peer under the test's control: listens on any port of 127.0.0.1 and hands each connection, one after the
// other, to a function on a thread of its own. Without a function it only keeps the port taken.
class LoopbackServer {
  public:
    using Serve = std::function<void(int socket)>;  // the socket is closed after it

    explicit LoopbackServer(Serve serve = {}) : serve_(std::move(serve)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 16) != 0 ||
            ::getsockname(listener_, generic, &size) != 0)
            throw std::runtime_error("cannot listen on 127.0.0.1");
        port_ = ntohs(address.sin_port);
        if (serve_) thread_ = std::thread([this] { run(); });
    }
    // A serve function that still reads its connection must see it end first.
    ~LoopbackServer() {
        ::shutdown(listener_, SHUT_RDWR);
        if (thread_.joinable()) thread_.join();
        ::close(listener_);
    }
    LoopbackServer(const LoopbackServer&) = delete;
    LoopbackServer& operator=(const LoopbackServer&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] int connections() const { return connections_; }

  private:
    void run() {
        for (;;) {
            const int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (peer < 0) return;
            ++connections_;
            serve_(peer);
            ::close(peer);
        }
    }

    Serve serve_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<int> connections_ = 0;
    std::thread thread_;
};

}  // namespace memtide::test
