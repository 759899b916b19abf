// What the agent answers at its socket, with a balancer that runs on a made-up machine.
#include "tiering-agent/app/agent_api.h"

#include <fstream>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/http/target.h"
#include "tests/tiering-agent/balance/made_up_machine.h"

namespace memtide::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Api : public testing::Test {
  protected:
    Api() {
        machine_.put_process(MadeUpMachine::kPid);
        write("tiering:\n  mode: observe\n");
        auto config = load_config(path());
        EXPECT_TRUE(config) << config.error().message;
        machine_.options_.config = config->tiering;
        live_.emplace(*config, path(), [this] { return load_config(path()); });
        api_.emplace(context_.get_executor(), machine_.files_, machine_.balancer(), *live_);
    }
    ~Api() override {
        if (balancing_.joinable()) balancing_.request_stop();
    }
    void start() {
        balancing_ = std::jthread([this](const std::stop_token& stop) { machine_.balancer().run(stop); });
    }
    [[nodiscard]] std::string path() const { return machine_.files_.absolute("agent.yaml"); }
    void write(const std::string& text) const { machine_.tree_.put("agent.yaml", text); }

    http::Response ask(const std::string& target, const std::string& method = "GET") {
        http::Request request;
        request.method = method;
        EXPECT_TRUE(http::parse_target(target, request));
        std::optional<http::Response> response;
        boost::asio::co_spawn(context_, api_->router().dispatch(std::move(request)),
                              [&](const std::exception_ptr& failure, http::Response answer) {
                                  EXPECT_FALSE(failure);
                                  response = std::move(answer);
                              });
        context_.restart();
        while (!response && context_.run_one() > 0) {
        }
        if (response) return *response;
        ADD_FAILURE() << target << " was not answered";
        return {};
    }
    boost::json::value json_of(const std::string& target, const std::string& method = "GET") {
        const http::Response response = ask(target, method);
        EXPECT_EQ(response.status, 200U) << response.body;
        return boost::json::parse(response.body);
    }
    static std::vector<std::string> texts(const boost::json::value& list) {
        std::vector<std::string> texts;
        for (const auto& text : list.as_array()) texts.emplace_back(text.as_string());
        return texts;
    }
    void expect_refusal(const std::string& target, unsigned status, const std::string& what) {
        const http::Response response = ask(target);
        EXPECT_EQ(response.status, status) << target;
        EXPECT_THAT(response.body, HasSubstr(what));
    }
    // Until it has looked for the first time.
    void wait_for_a_round() {
        while (machine_.balancer().status().rounds == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }

    boost::asio::io_context context_;
    MadeUpMachine machine_;
    std::optional<LiveConfig> live_;
    std::optional<AgentApi> api_;
    std::jthread balancing_;
};

TEST_F(Api, StatusHasTheConfigurationAndPressure) {
    machine_.tree_.put("proc/pressure/memory", "some avg10=5.00 avg60=0.00 avg300=0.00 total=1\n");
    machine_.tree_.put("sys/fs/cgroup/system.slice/worker.service/memory.pressure",
                       "some avg10=25.00 total=1\n");
    machine_.run(1);
    const auto status = json_of("/v1/status");
    EXPECT_EQ(std::string(status.at("config").at("file").as_string()), path());
    EXPECT_TRUE(status.at("config").at("last_error").is_null());
    EXPECT_THAT(status.at("config").at("loaded_at").as_string().c_str(), HasSubstr("T"));
    EXPECT_EQ(status.at("pressure"), 0.05);
    EXPECT_EQ(status.at("targets").at(0).at("pressure"), 0.25);
    EXPECT_EQ(status.at("targets").at(0).at("cgroups").at(0), "/system.slice/worker.service");
}

TEST_F(Api, StatusIsAnsweredWhileNobodyBalances) {
    EXPECT_EQ(json_of("/v1/status").at("rounds"), 0);
    EXPECT_THAT(ask("/metrics").body, HasSubstr("memtide_tiering_config_bad 0"));
}

TEST_F(Api, WhatTheBalancerKnowsIsAskedOfIt) {
    start();
    wait_for_a_round();
    EXPECT_EQ(json_of("/v1/wss").at("targets").at(0).at("processes"), 1);
    EXPECT_EQ(json_of("/v1/plan").at("mode"), "observe");
    EXPECT_EQ(json_of("/v1/heat").at("processes").at(0).at("pid"), MadeUpMachine::kPid);
    EXPECT_EQ(json_of("/v1/heat?target=all").at("processes").as_array().size(), 1U);
    const auto page = json_of("/v1/explain?pid=100&address=0x7f0000001000");
    EXPECT_EQ(page.at("comm"), "worker");
    EXPECT_EQ(json_of("/v1/explain?pid=100&address=7f0000001000").at("address"), "0x7f0000001000");
}

TEST_F(Api, GenerationsAreThoseOfTheCgroupsOfTargets) {
    machine_.run(1);
    expect_refusal("/v1/generations", 404, "debugfs has to be mounted");
    machine_.tree_.put(
        "sys/kernel/debug/lru_gen",
        "memcg     1 /\n node     0\n          0       2000        100          50 \n"
        "memcg     9 /system.slice/worker.service\n node     1\n          4       7000        2     1 \n");
    const auto rows = json_of("/v1/generations").at("generations").as_array();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0],
              boost::json::parse(R"({"cgroup": "/system.slice/worker.service", "node": 1, "age_ms": 7000,
                                              "anonymous": 8192, "file": 4096})"));
    (void)ask("/v1/generations", "POST");
    EXPECT_THAT(*machine_.files_.read("sys/kernel/debug/lru_gen"), testing::StartsWith("+ 9 1 4"));
    expect_refusal("/v1/generations?all=1", 400, "it takes none");
}

TEST_F(Api, WhatMakesNoSenseIsRefused) {
    start();
    wait_for_a_round();
    expect_refusal("/v1/explain?pid=x&address=0x1", 400, R"(pid: \"x\" is no process id)");
    expect_refusal("/v1/explain?address=0x1", 400, R"(pid: \"\" is no process id)");
    expect_refusal("/v1/explain?pid=-1&address=0x1", 400, "no process id");
    expect_refusal("/v1/explain?pid=100&address=zz", 400, "not hexadecimal");
    expect_refusal("/v1/explain?pid=100&address=0x", 400, "not hexadecimal");
    expect_refusal("/v1/explain?pid=100&address=0x10000000000000000", 400, "not hexadecimal");
    expect_refusal("/v1/explain?pid=100&adress=0x1", 400, R"(did you mean \"address\"?)");
    expect_refusal("/v1/explain?pid=100&pid=100&address=0x1", 400, "given twice");
    expect_refusal("/v1/explain?pid=4194000&address=0x1", 404, "there is no process 4194000");
    expect_refusal("/v1/explain?pid=100&address=0x1000", 404, "nothing is mapped at 0x1000");
    expect_refusal("/v1/heat?target=none", 404, R"(there is no target \"none\")");
    expect_refusal("/v1/heat?pid=7", 404, "process 7 is not looked at");
    expect_refusal("/v1/wss?pid=7", 400, "it takes none");
    expect_refusal("/v1/nothing", 404, "not-found");
}

TEST_F(Api, AReloadIsInServiceWhenItIsAnswered) {
    start();
    wait_for_a_round();
    write("manager: http://127.0.0.1:1\ntiering:\n  mode: move\n  targets:\n    - {name: one}\n");
    const auto change = json_of("/v1/reload", "POST");
    EXPECT_EQ(change.at("in_service"), true);
    EXPECT_EQ(change.at("mode"), "move");
    EXPECT_THAT(texts(change.at("changed")), ElementsAre("mode", "targets"));
    EXPECT_THAT(texts(change.at("needs_restart")), ElementsAre("manager"));
    const auto status = json_of("/v1/status");
    EXPECT_EQ(status.at("mode"), "move");
    EXPECT_EQ(status.at("targets").at(0).at("name"), "one");
    EXPECT_EQ(status.at("config").at("needs_restart").at(0), "manager");
}

TEST_F(Api, AMistakeIsToldWithItsPlaceAndChangesNothing) {
    start();
    wait_for_a_round();
    write("tiering:\n  mode: moove\n  targts: []\n");
    const http::Response response = ask("/v1/reload", "POST");
    EXPECT_EQ(response.status, 422U);
    const auto problem = boost::json::parse(response.body);
    EXPECT_EQ(problem.at("code"), "invalid-config");
    ASSERT_EQ(problem.at("mistakes").as_array().size(), 2U);
    EXPECT_THAT(texts(problem.at("mistakes"))[0],
                HasSubstr(R"(agent.yaml:2:9: "moove" is none of move, observe, off; did you mean "move"?)"));
    EXPECT_THAT(texts(problem.at("mistakes"))[1], HasSubstr("agent.yaml:3:3: "));
    const auto status = json_of("/v1/status");
    EXPECT_EQ(status.at("mode"), "observe");
    EXPECT_EQ(status.at("config").at("last_error").at("mistakes").as_array().size(), 2U);
    EXPECT_THAT(ask("/metrics").body, HasSubstr("memtide_tiering_config_bad 1"));
    write("tiering:\n  mode: observe\n");
    EXPECT_TRUE(json_of("/v1/reload", "POST").at("changed").as_array().empty());
    EXPECT_TRUE(json_of("/v1/status").at("config").at("last_error").is_null());
}

TEST_F(Api, WithoutAFileThereIsNothingToReadAgain) {
    LiveConfig bare({}, "", [] { return Result<AgentConfig>(AgentConfig{}); });
    EXPECT_EQ(bare.reload().error().code, ErrorCode::kConflict);
    EXPECT_FALSE(bare.failure());
}

TEST(LiveConfig, KeysThatNeedARestartAreNamed) {
    AgentConfig before;
    AgentConfig now = before;
    EXPECT_TRUE(keys_for_restart(before, now).empty());
    now.state = "/elsewhere";
    now.load_modules = false;
    now.channel.heartbeat = std::chrono::milliseconds(1);
    now.credentials.tls.ca = "/ca.pem";
    EXPECT_THAT(keys_for_restart(before, now), ElementsAre("ca", "state", "load_modules", "timing"));
}

TEST(LiveConfig, ChangedKeysAreThoseOfTiering) {
    TieringConfig before;
    TieringConfig now = before;
    EXPECT_TRUE(changed_keys(before, now).empty());
    now.slowdown = 0.5;
    now.tiers = {{.name = "a"}};
    EXPECT_THAT(changed_keys(before, now), ElementsAre("slowdown", "tiers"));
}

}  // namespace
}  // namespace memtide::agent
