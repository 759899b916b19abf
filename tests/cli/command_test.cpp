// The real `memtide` program against a manager whose answers the test writes.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

TEST(Command, PoolIsATableForPeopleAndTheAnswerItselfForPrograms) {
    ScriptedManager manager([](const http::Request&) {
        return http::json_response(200, R"({"capacity": 1073741824, "free": 268435456, "devices": []})");
    });
    const auto table = memtide(manager.url(), {"pool"});
    EXPECT_EQ(table.exit.code, 0);
    EXPECT_NE(table.standard_output.find("1GiB  256MiB"), std::string::npos) << table.standard_output;
    EXPECT_EQ(memtide(manager.url(), {"pool", "--json"}).standard_output,
              "{\"capacity\":1073741824,\"free\":268435456,\"devices\":[]}\n");
}

TEST(Command, ListsAreReadPageByPage) {
    ScriptedManager manager([](const http::Request& request) {
        const bool first = !request.query_value("page");
        return http::json_response(200, first ? R"({"items": [{"name": "host0"}], "next": "a b"})"
                                              : R"({"items": [{"name": "host1"}], "next": null})");
    });
    const auto output = memtide(manager.url(), {"--json", "hosts"});
    EXPECT_EQ(output.standard_output, "{\"items\":[{\"name\":\"host0\"},{\"name\":\"host1\"}]}\n");
    EXPECT_EQ(manager.requests().at(1).query_value("page"), "a b");
}

TEST(Command, ComposeWaitsUntilItIsOnlineAndSendsAnIdempotencyKey) {
    std::atomic<int> looks{0};
    ScriptedManager manager([&](const http::Request& request) {
        if (request.method == "POST") return http::json_response(202, composition("Pending"));
        return http::json_response(200, composition(++looks < 2 ? "Onlining" : "Online", R"(, "node": 1)"));
    });
    const auto output =
        memtide(manager.url(), {"compose", "host0", "256MiB", "--label", "team=a", "--ttl", "1h"});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    EXPECT_NE(output.standard_output.find("NUMA node         1"), std::string::npos)
        << output.standard_output;
    EXPECT_NE(output.standard_error.find("c-1 Onlining"), std::string::npos) << output.standard_error;
    const http::Request post = manager.requests().at(0);
    EXPECT_EQ(
        post.body,
        R"({"host":"host0","size":"256MiB","ttl":3600,"labels":{"team":"a"},"placement":{"policy":"pack"}})");
    EXPECT_FALSE(post.header("Idempotency-Key").value_or("").empty());
}

TEST(Command, ARefusalSaysWhatKeptWhichDeviceOut) {
    ScriptedManager manager([&](const http::Request&) {
        return http::json_response(409, R"({"status": 409, "code": "limit-exceeded", "detail": "no room",
            "excluded": [{"device": "mld0", "constraint": "in-use", "detail": "it has memory of blue"}]})");
    });
    const auto refused = memtide(manager.url(), {"compose", "host0", "256MiB"});
    EXPECT_EQ(refused.exit.code, 1);
    EXPECT_EQ(refused.standard_error,
              "memtide: no room (limit-exceeded)\n  mld0: it has memory of blue (in-use)\n");
    const auto json = memtide(manager.url(), {"--json", "compose", "host0", "256MiB"});
    EXPECT_EQ(json.standard_error, "memtide: no room (limit-exceeded)\n");
}

TEST(Command, ADryRunShowsWhatWasNotUsedAndNothingOfWhatDoesNotExist) {
    ScriptedManager manager([&](const http::Request&) {
        return http::json_response(200, R"({"id": null, "host": "host0", "size": 268435456, "state": null,
            "created": null, "updated": null, "expires": null, "parts": [], "steps": [],
            "excluded": [{"device": "mld1", "constraint": "flapping", "detail": "it comes and goes"}]})");
    });
    const auto plan = memtide(manager.url(), {"compose", "host0", "256MiB", "--dry-run"});
    EXPECT_EQ(plan.exit.code, 0) << plan.standard_error;
    EXPECT_EQ(plan.standard_output,
              "host              host0\nsize              256MiB\n\n"
              "not used\n  mld1: it comes and goes (flapping)\n");
}

TEST(Command, AStepThatNeverEndedWasGivenUpWhenItsCompositionIsOver) {
    for (const auto& [state, said] : {std::pair{"Failed", "given up"}, {"Onlining", "running"}}) {
        ScriptedManager manager([&](const http::Request&) {
            return http::json_response(
                200, composition(state, R"(, "steps": [{"step": "online", "started": "t1", "part": 0,
                                            "duration_ms": null, "detail": ""}])"));
        });
        EXPECT_NE(memtide(manager.url(), {"show", "c-1"}).standard_output.find(said), std::string::npos);
    }
}

TEST(Command, DevicesShowWhatADcdHasBesideWhatItsHostsAccepted) {
    ScriptedManager manager([&](const http::Request&) {
        return http::json_response(200, R"({"items": [{"name": "dcd0", "kind": "dcd", "size": 1073741824,
            "switch": "switch0", "port": 2, "head_count": 1, "serial": "0x1",
            "lds": [{"id": 0, "size": 0, "use": "free"}]}], "next": null})");
    });
    const std::string text = memtide(manager.url(), {"devices"}).standard_output;
    EXPECT_NE(text.find("dcd0    all  1GiB  dynamic  0x1"), std::string::npos) << text;
    EXPECT_NE(text.find("dcd0    0      0B  free"), std::string::npos) << text;
}

TEST(Command, ShowSaysSinceWhenTheAgentThatIsWaitedForIsAway) {
    ScriptedManager manager([&](const http::Request& request) {
        if (request.path == "/v1/hosts/host0")
            return http::json_response(200, R"({"name": "host0", "agent": {"connected": false,
                "away_since": "2026-01-01T00:00:00.000Z"}})");
        return http::json_response(
            200, composition("Onlining", R"(, "waiting_for": "the agent of host0 to online the memory")"));
    });
    EXPECT_NE(memtide(manager.url(), {"show", "c-1"})
                  .standard_output.find("the agent of host0 to online the memory; the agent is away since "
                                        "2026-01-01T00:00:00.000Z\n"),
              std::string::npos);
    EXPECT_EQ(memtide(manager.url(), {"--json", "show", "c-1"}).standard_output.find("away since"),
              std::string::npos);
}

TEST(Command, WhatIsHeldIsSaidBelowHostsSwitchesAndThePool) {
    const std::string held = R"("name": "x0", "held": "it comes and goes")";
    ScriptedManager manager([&](const http::Request& request) {
        return http::json_response(200, request.path == "/v1/pool"
                                            ? R"({"capacity": 1, "devices": [{)" + held + "}]}"
                                            : R"({"next": null, "items": [{)" + held + "}]}");
    });
    for (const char* command : {"pool", "hosts", "switches", "devices"})
        EXPECT_NE(memtide(manager.url(), {command})
                      .standard_output.find("\nx0: it comes and goes; gets nothing new\n"),
                  std::string::npos)
            << command;
}

TEST(Command, AnLdIsLiftedOutOfQuarantineByItsSerialNumber) {
    ScriptedManager manager(
        [](const http::Request&) { return http::json_response(200, R"({"serial": "0x4d54000100000001"})"); });
    const auto lifted = memtide(manager.url(), {"lift", "0x4d54000100000001"});
    EXPECT_EQ(lifted.exit.code, 0) << lifted.standard_error;
    EXPECT_NE(lifted.standard_output.find("LD 0x4d54000100000001 is out of quarantine"), std::string::npos);
    const http::Request request = manager.requests().at(0);
    EXPECT_EQ(request.method + " " + request.path, "DELETE /v1/quarantine/0x4d54000100000001");
    EXPECT_EQ(memtide(manager.url(), {"lift"}).exit.code, 2);
}

TEST(Command, ACompositionThatFailsIsAFailureWithItsReason) {
    ScriptedManager manager([](const http::Request& request) {
        if (request.method == "POST") return http::json_response(202, composition("Pending"));
        return http::json_response(
            200,
            composition("Failed", R"(, "reason": {"code": "bind-refused", "detail": "the switch said no"})"));
    });
    const auto output = memtide(manager.url(), {"compose", "host0", "256MiB"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("c-1 ended as Failed, not Online: the switch said no"),
              std::string::npos)
        << output.standard_error;
}

TEST(Command, WhatDoesNotComeAboutInTimeIsAFailureThatSaysHowFarItIs) {
    ScriptedManager manager([](const http::Request& request) {
        return http::json_response(request.method == "DELETE" ? 202 : 200,
                                   composition("Draining", R"(, "waiting_for": "the agent of host0")"));
    });
    const auto output = memtide(manager.url(), {"release", "c-1", "--timeout", "1"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("c-1 is still Draining, waits for the agent of host0 after 1 s"),
              std::string::npos)
        << output.standard_error;
}

TEST(Command, ReleaseCanBeForcedAndNotWaitedFor) {
    ScriptedManager manager(
        [](const http::Request&) { return http::json_response(202, composition("Draining")); });
    EXPECT_EQ(memtide(manager.url(), {"release", "c-1", "--force", "--no-wait"}).exit.code, 0);
    ASSERT_EQ(manager.requests().size(), 1U);
    EXPECT_EQ(manager.requests()[0].method, "DELETE");
    EXPECT_EQ(manager.requests()[0].query_value("force"), "true");
}

TEST(Command, ARefusalIsTheManagersDetailWithItsCode) {
    ScriptedManager manager([](const http::Request&) {
        return http::problem(409, "exceeds-free", "1GiB was asked for, 256MiB are free");
    });
    const auto output = memtide(manager.url(), {"compose", "host0", "1GiB"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_EQ(output.standard_error, "memtide: 1GiB was asked for, 256MiB are free (exceeds-free)\n");
}

TEST(Command, AManagerThatIsDownIsNamedWithWhatToDo) {
    const auto output = memtide("http://127.0.0.1:1", {"pool"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("is memtide-fabric-manager running there?"), std::string::npos)
        << output.standard_error;
}

TEST(Command, ARefusalWith503IsNotTakenForAManagerThatIsDown) {
    ScriptedManager manager([](const http::Request&) {
        return http::problem(503, "host-not-reachable", "switch0 does not answer");
    });
    const auto output = memtide(manager.url(), {"compose", "host0", "256MiB"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_EQ(output.standard_error, "memtide: switch0 does not answer (host-not-reachable)\n");
}

TEST(Command, ComposeOverABrokenConnectionIsRepeatedWithTheSameKey) {
    asio::io_context context;
    asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    std::vector<std::string> heard;
    std::thread thread([&] {
        for (int i = 0; i < 2; ++i) {
            asio::ip::tcp::socket client(context);
            acceptor.accept(client);
            std::string& text = heard.emplace_back();
            while (text.find("256MiB") == std::string::npos) {
                char piece[1024];
                text.append(piece, client.read_some(asio::buffer(piece)));
            }
            if (i == 0) continue;  // hangs up without an answer
            const std::string body = composition("Pending");
            asio::write(client, asio::buffer("HTTP/1.1 202 Accepted\r\nContent-Length: " +
                                             std::to_string(body.size()) + "\r\n\r\n" + body));
        }
    });
    const auto output = memtide("http://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port()),
                                {"compose", "host0", "256MiB", "--no-wait"});
    thread.join();
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    const auto key_of = [](const std::string& request) {
        const auto begin = request.find("Idempotency-Key: ");
        return begin == std::string::npos ? "" : request.substr(begin, request.find("\r\n", begin) - begin);
    };
    EXPECT_NE(key_of(heard[0]), "");
    EXPECT_EQ(key_of(heard[0]), key_of(heard[1]));
}

TEST(Command, FollowingEventsOfAManagerThatIsDownFailsAtOnce) {
    const auto output = memtide("http://127.0.0.1:1", {"events", "--follow"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("is memtide-fabric-manager running there?"), std::string::npos)
        << output.standard_error;
}

TEST(Command, AnAnswerThatIsNotJsonIsAFailureNotACrash) {
    ScriptedManager manager([](const http::Request&) { return http::json_response(200, "<html>"); });
    for (const char* command : {"pool", "hosts", "list", "topology"})
        EXPECT_EQ(memtide(manager.url(), {command}).exit.code, 1) << command;
}

TEST(Command, EventsAreAPieceEach) {
    ScriptedManager manager([](const http::Request& request) {
        EXPECT_EQ(request.query_value("follow"), "false");
        http::Response response;
        response.headers["Content-Type"] = "text/event-stream";
        response.body =
            "retry: 2000\n\nid: 7\nevent: switch.up\ndata: {\"id\": 7, \"type\": \"switch.up\", "
            "\"switch\": \"switch0\"}\n\n: heartbeat\n\n";
        return response;
    });
    const auto output = memtide(manager.url(), {"events", "--since", "6"});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    EXPECT_NE(output.standard_output.find("switch.up                switch=switch0\n"), std::string::npos)
        << output.standard_output;
}

TEST(Command, WrongUsageIsExitCodeTwo) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                      {"frobnicate"},
                                                      {"compose"},
                                                      {"compose", "host0", "1GiB", "--label", "x"}})
        EXPECT_EQ(memtide("http://127.0.0.1:1", arguments).exit.code, 2);
    EXPECT_EQ(memtide("http://127.0.0.1:1", {"--help"}).exit.code, 0);
    EXPECT_EQ(memtide("http://127.0.0.1:1", {"--version"}).exit.code, 0);
}

TEST(Command, RackIsTheEmulatorsProgram) {
    const auto output = memtide("", {"rack", "--help"});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    EXPECT_NE(output.standard_output.find("exec"), std::string::npos) << output.standard_output;
}

}  // namespace
}  // namespace memtide::cli
