// The relay as QEMU runs it: a process whose standard input and output are one socket.
#include <array>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/process/child.h"

namespace memtide::emul {
namespace {

// Listens on any loopback port, answers one connection with what it got, backwards, when its input ends.
class BackwardsServer {
  public:
    BackwardsServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listener_, 1), 0);
        socklen_t size = sizeof address;
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    ~BackwardsServer() {
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }
    [[nodiscard]] std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

  private:
    void serve() const {
        const int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (peer < 0) return;
        std::string got;
        std::array<char, 4096> chunk{};
        for (ssize_t n = 0; (n = ::read(peer, chunk.data(), chunk.size())) > 0;)
            got.append(chunk.data(), static_cast<std::size_t>(n));
        const std::string answer(got.rbegin(), got.rend());
        for (std::size_t sent = 0; sent < answer.size();) {
            const auto n = ::send(peer, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
            if (n <= 0) break;
            sent += static_cast<std::size_t>(n);
        }
        ::close(peer);
    }
    int listener_;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

process::Command relay(const std::string& address) {
    process::Command command;
    command.argv = {MEMTIDE_CXL_EMUL, "relay", address};
    return command;
}

TEST(Relay, CarriesBothDirectionsWhole) {
    const BackwardsServer server;
    std::string sent;
    for (int i = 0; sent.size() < 300'000; ++i) sent += std::to_string(i);
    auto output = process::run(relay(server.address()), std::chrono::seconds(60), sent);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->exit.code, 0);
    EXPECT_TRUE(output->standard_output == std::string(sent.rbegin(), sent.rend()));
}

TEST(Relay, ManagerThatIsDownEndsItAtOnce) {
    std::string address;
    {
        address = BackwardsServer().address();
    }
    auto output = process::run(relay(address), std::chrono::seconds(60));
    ASSERT_TRUE(output);
    EXPECT_EQ(output->exit.code, 1);
    EXPECT_EQ(output->standard_output, "");
}

TEST(Relay, AddressBeyondThisMachineIsRefused) {
    auto output = process::run(relay("192.0.2.1:80"), std::chrono::seconds(60));
    ASSERT_TRUE(output);
    EXPECT_EQ(output->exit.code, 2);
}

}  // namespace
}  // namespace memtide::emul
