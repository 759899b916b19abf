// Clients that are slow, many, or send too much: they are dropped, others are served meanwhile.
#include <vector>

#include "common/daemon/daemon.h"
#include "tests/integration/fabric_fixture.h"
#include "tests/integration/raw_connection.h"

namespace memtide::test {
namespace {

class Connections : public Fabric {
  protected:
    void SetUp() override {
        daemon::raise_file_limit();
        run_switch();
        run_manager({.timing = {}, .limits = "connections: 1100, request_timeout: 1s"});
        run_agent("host0");
        expect_ready();
    }
    RawConnection connect() { return RawConnection(tcp_port(*manager_)); }
    void expect_service() {
        const std::string id = compose("host0");
        expect_state(id, "Online");
        release(id);
        expect_state(id, "Released");
    }
};

TEST_F(Connections, ASlowClientIsDroppedAtTheRequestTimeout) {
    RawConnection slow = connect();
    // One byte at a time, for as long as the manager takes them.
    const std::string request = "POST /v1/compositions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
    std::size_t sent = 0;
    const bool dropped = eventually(
        [&] { return !slow.send(sent < request.size() ? request.substr(sent++, 1) : std::string("x")); });
    EXPECT_TRUE(dropped);
    expect_service();
}

TEST_F(Connections, AHalfSentRequestIsDroppedAtTheRequestTimeout) {
    RawConnection slow = connect();
    ASSERT_TRUE(slow.send("GET /v1/pool HTTP/1.1\r\nHost: x\r\nX-Unfinished: "));
    const std::string answer = slow.read_to_end();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 408")) << answer;
    expect_service();
}

TEST_F(Connections, AHeaderFloodIsRefused) {
    RawConnection flood = connect();
    flood.send("GET /v1/pool HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 10'000; ++i)
        if (!flood.send("X-Header-" + std::to_string(i) + ": " + std::string(100, 'x') + "\r\n")) break;
    const std::string answer = flood.read_to_end();
    // The refusal may be lost when the kernel resets a connection that still sends.
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 431")) << answer;
    expect_service();
}

TEST_F(Connections, WhatIsNotHttpIsRefused) {
    for (const std::string_view bytes :
         {std::string_view("\x16\x03\x01\x02\x00\x01\x00", 7), std::string_view("nonsense\r\n\r\n"),
          std::string_view("\0\0\0\0", 4)}) {
        RawConnection wrong = connect();
        wrong.send(bytes);
        const std::string answer = wrong.read_to_end();
        EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4")) << answer;
    }
    expect_service();
}

TEST_F(Connections, AThousandIdleConnectionsDoNotKeepOthersOut) {
    std::vector<RawConnection> idle;
    for (int i = 0; i < 1000; ++i) idle.push_back(connect());
    expect_service();
}

TEST_F(Connections, BeyondTheLimitNewConnectionsAreRefusedAndTheOldOnesServed) {
    std::vector<RawConnection> idle;
    // This test's own client has a connection, and the agent has two.
    for (int i = 0; i < 1100; ++i) idle.push_back(connect());
    RawConnection one_more = connect();
    const std::string answer = one_more.read_to_end();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 503")) << answer;
    EXPECT_EQ(rest_.get("/healthz").status, 200U);
    idle.clear();
    EXPECT_TRUE(
        eventually([this] { return RestClient(manager_url(folder_)).get("/healthz").status == 200; }));
}

}  // namespace
}  // namespace memtide::test
