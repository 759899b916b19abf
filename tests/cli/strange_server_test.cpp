// The real `memtide` program against servers that are no fabric manager, or one that has lost its mind.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/cli/scripted_manager.h"
#include "tests/support/loopback_server.h"

namespace memtide::cli {
namespace {

const std::vector<std::vector<std::string>> kCommands{
    {"pool"},         {"hosts"},       {"switches"},
    {"devices"},      {"topology"},    {"list"},
    {"show", "x"},    {"events"},      {"compose", "host0", "256MiB"},
    {"events", "-f"}, {"release", "x"}};

// Answers each connection's request with the same bytes.
test::LoopbackServer::Serve always(std::string answer) {
    return [answer = std::move(answer)](int socket) {
        std::string request;
        char piece[4096];
        while (!request.contains("\r\n\r\n")) {
            const ssize_t got = ::recv(socket, piece, sizeof piece, 0);
            if (got <= 0) return;
            request.append(piece, static_cast<std::size_t>(got));
        }
        (void)::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
        ::shutdown(socket, SHUT_WR);
        // Closing with bytes unread would reset the connection, and the answer with it.
        while (::recv(socket, piece, sizeof piece, 0) > 0) continue;
    };
}

std::string with_body(std::string_view type, std::string_view body) {
    return "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " + std::string(type) +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

void expect_refused_by_every_command(const std::string& answer) {
    test::LoopbackServer server(always(answer));
    const std::string url = "http://" + server.address();
    for (const auto& command : kCommands) {
        const int before = server.connections();
        const auto output = memtide(url, command);
        EXPECT_EQ(output.exit.code, 1) << command[0];
        EXPECT_EQ(output.standard_output, "") << command[0];
        EXPECT_TRUE(output.standard_error.starts_with("memtide: unexpected answer from " + url + "/v1/"))
            << command[0] << ": " << output.standard_error;
        EXPECT_EQ(server.connections() - before, 1) << command[0] << " asked again";
    }
}

TEST(StrangeServer, AnEmptyObjectIsNoAnswer) {
    expect_refused_by_every_command(with_body("application/json", "{}"));
}

TEST(StrangeServer, AnEmptyArrayIsNoAnswer) {
    expect_refused_by_every_command(with_body("application/json", "[]"));
}

TEST(StrangeServer, NoContentIsNoAnswer) {
    expect_refused_by_every_command("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

TEST(StrangeServer, ARedirectIsNoAnswer) {
    expect_refused_by_every_command(
        "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: http://elsewhere/\r\nContent-Length: "
        "0\r\n\r\n");
}

TEST(StrangeServer, APageForPeopleIsNoAnswer) {
    expect_refused_by_every_command(with_body("text/html", "<html><body>Welcome!</body></html>"));
}

TEST(StrangeServer, AnEventThatIsNoneIsNoAnswer) {
    test::LoopbackServer server(always(with_body("text/event-stream", "data: {}\n\n")));
    const auto output = memtide("http://" + server.address(), {"events", "--follow"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("unexpected answer from"), std::string::npos)
        << output.standard_error;
}

TEST(StrangeServer, AnItemThatIsNoneIsNoAnswer) {
    ScriptedManager manager([](const http::Request&) {
        return http::json_response(200, R"({"items": [{"name": "host0"}, 7], "next": null})");
    });
    EXPECT_EQ(memtide(manager.url(), {"hosts"}).exit.code, 1);
}

TEST(StrangeServer, AListWhosePagesTurnInACircleEnds) {
    ScriptedManager manager([](const http::Request& request) {
        const bool a = request.query_value("page").value_or("") == "a";
        return http::json_response(200, std::string(R"({"items": [], "next": ")") + (a ? "b" : "a") + "\"}");
    });
    const auto output = memtide(manager.url(), {"list"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("its pages have no end"), std::string::npos)
        << output.standard_error;
    EXPECT_EQ(manager.requests().size(), 3U);  // the first page, a, b, and then a again
}

TEST(StrangeServer, ProblemsCannotSteerTheTerminal) {
    ScriptedManager manager([](const http::Request&) {
        http::Response response;
        response.status = 409;
        response.body = R"({"code": "\u001b[31m", "detail": "x\u001b[2Jy"})";
        return response;
    });
    const auto output = memtide(manager.url(), {"pool"});
    EXPECT_EQ(output.standard_error, "memtide: x\\x1b[2Jy (\\x1b[31m)\n");
    EXPECT_EQ(memtide(manager.url(), {"pool", "--json"}).standard_output,
              "{\"status\":409,\"code\":\"\\u001b[31m\",\"detail\":\"x\\u001b[2Jy\"}\n");
}

}  // namespace
}  // namespace memtide::cli
