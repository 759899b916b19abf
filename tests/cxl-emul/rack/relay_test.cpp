// The relay as QEMU runs it: a process whose standard input and output are one socket.
#include <array>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/process/child.h"
#include "tests/support/loopback_server.h"

namespace memtide::emul {
namespace {

// Answers a connection with what it got, backwards, when its input ends.
void answer_backwards(int peer) {
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
}

process::Command relay(const std::string& address) {
    process::Command command;
    command.argv = {MEMTIDE_CXL_EMUL, "relay", address};
    return command;
}

TEST(Relay, CarriesBothDirectionsWhole) {
    const test::LoopbackServer server(answer_backwards);
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
        address = test::LoopbackServer().address();
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
