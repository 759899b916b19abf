// `memtide agent ...`.
#include "cli/render/agent.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/render/heat.h"
#include "cli/render/heat_rows.h"
#include "cli/render/tiering.h"
#include "cli/render/top.h"
#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// An agent that gives the same answer to every question.
class ScriptedAgent {
  public:
    explicit ScriptedAgent(std::string body, unsigned status = 200)
        : agent_([body = std::move(body),
                  status](const http::Request&) { return http::json_response(status, body); },
                 "unix:" + socket_) {}
    process::Output run(std::vector<std::string> words) {
        words.insert(words.begin(), "agent");
        words.insert(words.end(), {"--socket", socket_});
        return memtide("", words);
    }
    std::vector<http::Request> requests() { return agent_.requests(); }

  private:
    std::string socket_ = testing::TempDir() + "agent-" + std::to_string(::getpid()) + ".sock";
    ScriptedManager agent_;
};

constexpr const char* kSets = R"json({"within_seconds": [10, 60, 600],
    "targets": [{"name": "redis", "processes": 2, "rss": 5368709120, "looked_at": 4294967296,
                 "looked_at_fast": 1073741824, "touched": [1048576, 1610612736, 4294967296],
                 "watched_seconds": 75}],
    "cgroups": [{"name": "/a.slice", "processes": 2, "rss": 1, "looked_at": 4096, "looked_at_fast": 0,
                 "touched": [0, 0, 0], "watched_seconds": 900}],
    "processes": [{"name": "redis-server", "pid": 812, "target": "redis", "processes": 1, "rss": 1,
                   "looked_at": 4096, "looked_at_fast": 0, "touched": [0, 0, 0], "watched_seconds": 5}]})json";

constexpr const char* kPlan = R"json({"mode": "observe", "note": null,
    "left_out": [{"target": "rest", "why": "its mode is observe"}],
    "pairs": [{"fast": "dram", "slow": "cxl", "fast_free": 1048576, "slow_free": 2097152, "reserve": 524288,
               "up": 819200, "down": 819200, "most": 1073741824, "even": false, "hit_before": 0.25,
               "hit_after": 0.9, "coldest_up": 0.8, "warmest_down": 0.031,
               "targets": [{"name": "redis", "up": 819200, "down": 0, "rate_limit": 209715200}]}]})json";

constexpr const char* kPage = R"json({"pid": 812, "comm": "redis-server", "address": "0x7f0000001000",
    "membership": "matches target \"redis\"", "target": "redis",
    "mapping": {"begin": "0x7f0000000000", "end": "0x7f0000800000", "kind": "anonymous", "name": null,
                "permissions": "rw-p", "locked": false, "hugetlb": false, "policy": "default"},
    "may_move": true, "why_not": [], "present": true, "node": 1, "tier": "cxl",
    "heat": {"huge": false, "windows": 40, "lasting": 0.5, "recent": 0.75, "changing": true,
             "untouched_seconds": 12, "weighted": 0.75},
    "rank": {"fast": "dram", "slow": "cxl", "warmer": 1048576, "as_warm": 4096, "ranked": 8388608,
             "in_fast": 2097152, "coldest_fast": 0.1, "warmest_slow": null},
    "last_move": {"seconds_ago": 3, "to": null, "error": "EBUSY", "undid_another": false, "rests": true},
    "verdict": "it rests"})json";

constexpr const char* kHeat = R"json({"tiers": ["dram", "cxl"], "processes": [{"pid": 812, "comm": "redis",
    "target": "all", "columns_seconds_ago": [180, 120, 60],
    "rows": [{"begin": "0x7f0000000000", "end": "0x7f0000200000", "touched": [null, 0, 100], "slow": [null, 0, 0]},
             {"begin": "0x7f0000200000", "end": "0x7f0000400000", "touched": [0, 50, 90], "slow": [100, 100, 100]},
             {"begin": "0x7f0010000000", "end": "0x7f0010200000", "touched": [10, 10, 10], "slow": [0, 0, 30]}]}]})json";

constexpr const char* kStatus = R"json({"mode": "move", "tracker": "soft-dirty (writes)", "notes": [],
    "hit": 0.947, "even": false, "promoted": 1048576, "demoted": 0, "wasted": 0, "failed": {}, "rounds": 7,
    "window_ms": 150, "rest_ms": 900, "processor_seconds": 1.5, "heat_bytes": 2048, "pressure": 0.125,
    "config": {"file": "/etc/agent.yaml", "loaded_at": "2026-12-01T05:00:00Z", "needs_restart": ["state"],
               "last_error": {"at": "2026-12-01T06:00:00Z", "mistakes": ["agent.yaml:2:3: wrong"]}},
    "tiers": [{"name": "dram", "nodes": [0], "capacity": 1073741824, "free": 4096, "why": "has CPUs"}],
    "targets": [{"name": "redis", "processes": 2, "bytes": {"dram": 8192}, "promoted": 1048576, "demoted": 0,
                 "pressure": null}]})json";

TEST(AgentStatus, TellsTiersTargetsAndWhatWasMoved) {
    const std::string text =
        render_agent_status(boost::json::parse(R"json({"mode": "move", "tracker": "soft-dirty (writes)",
        "notes": ["DAMON runs"], "hit": 0.947, "even": false, "promoted": 1048576, "demoted": 524288, "wasted": 4096,
        "failed": {"EBUSY": 8192}, "rounds": 7, "window_ms": 150, "rest_ms": 900, "processor_seconds": 1.25,
        "heat_bytes": 2048,
        "tiers": [{"name": "fast", "nodes": [0], "capacity": 1073741824, "free": 4096, "why": "has CPUs"},
                  {"name": "slow", "nodes": [1, 2], "capacity": 2147483648, "free": 4096, "why": "no CPUs"}],
        "targets": [{"name": "redis", "processes": 2, "bytes": {"fast": 8192, "slow": 16384},
                     "promoted": 1048576, "demoted": 0,
                     "far": {"state": "sending", "why": "1MiB a minute at most", "out": 8192, "saved": 4096,
                             "came_back": 4096, "sent": 12288}}]})json"));
    EXPECT_THAT(text, HasSubstr("far         redis: 8KiB out, 4KiB saved, 4KiB came back of 12KiB; sending: "
                                "1MiB a minute at most\n"));
    EXPECT_THAT(text, HasSubstr("sees        soft-dirty (writes)\n"));
    EXPECT_THAT(text, HasSubstr("fast hits   about 94.7 %\n"));
    EXPECT_THAT(text, HasSubstr("moved       1MiB up, 512KiB down, 4KiB of it for nothing\n"));
    EXPECT_THAT(text, HasSubstr("not moved   8KiB EBUSY\n"));
    EXPECT_THAT(text, HasSubstr("note        DAMON runs\n"));
    EXPECT_THAT(text, HasSubstr("slow  1 2"));
    EXPECT_THAT(text, HasSubstr("redis           2  8KiB  16KiB  1MiB    0B"));
}

TEST(AgentStatus, WhateverTheAnswerNothingFallsOver) {
    for (const char* const answer :
         {"{}", R"({"tiers": [1], "targets": [[], {"far": 7}], "failed": 3, "notes": [{}]})",
          R"({"hit": "much", "tiers": [{"nodes": "all"}], "targets": [{"bytes": [], "name": 5}]})"})
        EXPECT_FALSE(render_agent_status(boost::json::parse(answer)).empty());
}

TEST(AgentStatus, WithoutAnAgentItSaysSo) {
    const auto output = memtide("", {"agent", "status", "--socket", "/nowhere/agent.sock"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_THAT(output.standard_error, HasSubstr("does memtide-tiering-agent run"));
    EXPECT_EQ(memtide("", {"agent"}).exit.code, 2);
    EXPECT_EQ(memtide("", {"agent", "status", "--socket", ""}).exit.code, 2);
}

TEST(AgentStatus, TellsWhichConfigurationIsInService) {
    EXPECT_THAT(render_agent_status(boost::json::parse(kStatus)),
                AllOf(HasSubstr("config      /etc/agent.yaml, read at 2026-12-01T05:00:00Z\n"),
                      HasSubstr("            a change of `state` needs a restart\n"),
                      HasSubstr("not read    agent.yaml:2:3: wrong at 2026-12-01T06:00:00Z\n")));
}

TEST(AgentWorkingSets, WhatNobodyWatchedForSoLongIsNotTold) {
    const std::string text = render_working_sets(boost::json::parse(kSets));
    EXPECT_THAT(text,
                HasSubstr("TARGET  PROCESSES   RSS  LOOKED AT   10s    1min  10min    COLD  FAST  WATCHED"));
    EXPECT_THAT(text,
                HasSubstr("redis           2  5GiB       4GiB  1MiB  1.5GiB      -  2.5GiB  1GiB      75s"));
    EXPECT_THAT(text, HasSubstr("/a.slice"));
    EXPECT_THAT(text, HasSubstr("15min"));
    EXPECT_THAT(text, HasSubstr("redis-server  812  redis"));
    EXPECT_EQ(render_working_sets(boost::json::parse(R"({"within_seconds": [], "targets": []})")),
              "nothing is watched\n");
}

TEST(AgentPlan, TellsWhatWouldMoveAndWhatItGains) {
    const std::string text = render_tiering_plan(boost::json::parse(kPlan));
    EXPECT_THAT(text, HasSubstr("mode        observe: nothing is moved"));
    EXPECT_THAT(text, HasSubstr("left out    rest: its mode is observe\n"));
    EXPECT_THAT(text, HasSubstr("would move 800KiB up, 800KiB down\n"));
    EXPECT_THAT(text, HasSubstr("about 25.0 % now, 90.0 % then"));
    EXPECT_THAT(text, HasSubstr("what 80.0 % of the windows or more see touched"));
    EXPECT_THAT(text, HasSubstr("redis   dram, cxl  800KiB    0B  200MiB/s"));
}

TEST(AgentExplain, TellsWhereThePageIsAndWhy) {
    const std::string text = render_explanation(boost::json::parse(kPage));
    EXPECT_THAT(text, HasSubstr("page        0x7f0000001000 of process 812 (redis-server)\n"));
    EXPECT_THAT(text, HasSubstr("process     matches target \"redis\"\n"));
    EXPECT_THAT(text, HasSubstr("mapping     0x7f0000000000-0x7f0000800000 rw-p anonymous\n"));
    EXPECT_THAT(text, HasSubstr("is on       node 1, tier cxl\n"));
    EXPECT_THAT(text, HasSubstr("may move    yes\n"));
    EXPECT_THAT(text, HasSubstr("touched in 50.0 % of the windows, in 75.0 % of the last few, which counts"));
    EXPECT_THAT(text, HasSubstr("last seen touched 12s ago\n"));
    EXPECT_THAT(text, HasSubstr("rank        1MiB are warmer, 4KiB as warm; dram has 2MiB of 8MiB\n"));
    EXPECT_THAT(text, HasSubstr("not moved   3s ago: EBUSY; it rests\n"));
    EXPECT_THAT(text, HasSubstr("so          it rests\n"));
}

TEST(AgentHeat, InPlainTextTiersAreWords) {
    const std::string text = render_heat(boost::json::parse(kHeat), {});
    EXPECT_THAT(text, HasSubstr("redis (process 812), target all\n"));
    EXPECT_THAT(text, HasSubstr("0x7f0000000000   2MiB fast       .@\n"));
    EXPECT_THAT(text, HasSubstr("0x7f0000200000   2MiB slow      .+@\n"));
    EXPECT_THAT(text, HasSubstr("...            252MiB\n")) << "the gap";
    EXPECT_THAT(text, HasSubstr("0x7f0010000000   2MiB 30 % slow :::\n"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(AgentHeat, OnATerminalItHasColoursAndFits) {
    const std::string text = render_heat(boost::json::parse(kHeat), {.columns = 80});
    EXPECT_THAT(text, HasSubstr("\x1b[48;5;226m"));
    EXPECT_THAT(text, HasSubstr("\x1b[48;5;51m"));
    EXPECT_THAT(text, HasSubstr("\x1b[0m\n"));
}

TEST(AgentHeat, ManyRowsBecomeFew) {
    HeatRows heat{.title = "x", .columns = 1};
    for (std::uint64_t i = 0; i < 100; ++i)
        heat.rows.push_back(
            {.begin = i * 10, .end = i * 10 + (i < 90 ? 10U : 5U), .cells = {{i == 0 ? 100 : 0, 0}}});
    squeeze(heat, 20);
    EXPECT_LE(heat.rows.size(), 20U);
    EXPECT_EQ(heat.rows.front().begin, 0U);
    EXPECT_GT(heat.rows.front().cells[0].touched, 0);
    EXPECT_EQ(heat.rows.back().end, 995U);
    squeeze(heat, 0);
    EXPECT_EQ(heat.rows.size(), 1U);
}

TEST(AgentHeat, AsAPictureItIsOneDocument) {
    const std::string svg = draw_heat(boost::json::parse(kHeat));
    EXPECT_THAT(svg, AllOf(HasSubstr("<svg"), HasSubstr("</svg>"), HasSubstr("0x7f0010000000"),
                           HasSubstr("redis (process 812)")));
    EXPECT_THAT(draw_heat(boost::json::parse(R"({"processes": [{"comm": "<script>"}]})")),
                Not(HasSubstr("<script>")));
}

TEST(AgentTop, RatesAreOfTheTimeBetweenTwoAnswers) {
    TopView view;
    const TopView::Time now{std::chrono::hours(1)};
    auto status = boost::json::parse(kStatus);
    EXPECT_THAT(view.page(status, now),
                AllOf(HasSubstr("agent - of a processor"), HasSubstr("pressure 12.5 %")));
    status.at("targets").at(0).at("promoted") = 1048576 + 4194304;
    status.at("processor_seconds") = 1.52;
    const std::string text = view.page(status, now + std::chrono::seconds(2));
    EXPECT_THAT(text, HasSubstr("agent 1.0 % of a processor"));
    EXPECT_THAT(text, HasSubstr("redis           2  8KiB 100 %  2MiB/s  0B/s"));
    status.at("targets").at(0).at("promoted") = 0;
    EXPECT_THAT(view.page(status, now + std::chrono::seconds(3)), HasSubstr("8KiB 100 %   -  0B/s"))
        << "the agent has begun anew";
}

TEST(AgentAnswers, WhateverTheyHoldNothingFallsOver) {
    for (
        const char* const answer :
        {"{}", "[]", "null", "3",
         R"({"within_seconds": ["x", -1], "targets": [1, {"touched": [-5, "x"], "looked_at": "x", "watched_seconds": 99}],
              "cgroups": {}, "processes": [{"rows": [{"begin": "x"}, {"begin": "0x5", "end": "0x1"}, 3,
              {"begin": "0x1", "end": "0x5", "touched": "x"}], "columns_seconds_ago": ["x", 1]}]})",
         R"({"pairs": [{}, 1], "left_out": [1], "mapping": 3, "why_not": [3], "heat": {}, "rank": {}, "last_move": {},
              "processes": [[], {"columns_seconds_ago": [1e300], "rows": [{"begin": "0x1", "end": "0x2", "touched": [1e300, 1000]}]}],
              "tiers": [1, {}], "targets": [[], {"bytes": 5}]})"}) {
        const auto value = boost::json::parse(answer);
        EXPECT_FALSE(render_working_sets(value).empty());
        EXPECT_FALSE(render_generations(value).empty());
        EXPECT_FALSE(render_tiering_plan(value).empty());
        EXPECT_FALSE(render_explanation(value).empty());
        EXPECT_FALSE(render_reload(value).empty());
        EXPECT_FALSE(render_heat(value, {}).empty());
        EXPECT_FALSE(render_heat(value, {.columns = 10}).empty());
        EXPECT_FALSE(draw_heat(value).empty());
        EXPECT_FALSE(render_top(value).empty());
    }
}

TEST(AgentCommands, AskTheAgent) {
    ScriptedAgent sets(kSets);
    EXPECT_THAT(sets.run({"wss"}).standard_output, HasSubstr("TARGET  PROCESSES"));
    EXPECT_EQ(sets.requests().at(0).path, "/v1/wss");
    EXPECT_EQ(boost::json::parse(sets.run({"wss", "--json"}).standard_output), boost::json::parse(kSets));
    EXPECT_EQ(sets.run({"plan"}).exit.code, 1) << "that is no plan";
}

TEST(AgentCommands, GenerationsBeginOnlyWhenTheyAreToldTo) {
    ScriptedAgent agent(
        R"({"generations": [{"cgroup": "/load", "node": 1, "age_ms": 120000, "anonymous": 1048576,
        "file": 0}]})");
    EXPECT_THAT(agent.run({"generations"}).standard_output,
                AllOf(HasSubstr("CGROUP"), HasSubstr("/load      1  2min       1MiB")));
    EXPECT_EQ(agent.requests().at(0).method, "GET");
    EXPECT_EQ(agent.run({"generations", "--begin"}).exit.code, 0);
    EXPECT_EQ(agent.requests().at(1).method, "POST");
    EXPECT_EQ(agent.requests().at(1).path, "/v1/generations");
}

TEST(AgentCommands, ExplainAsksForTheAddress) {
    ScriptedAgent agent(kPage);
    EXPECT_THAT(agent.run({"explain", "812", "0x7f0000001000"}).standard_output,
                HasSubstr("so          it rests"));
    EXPECT_EQ(agent.requests().at(0).query.at("pid"), "812");
    EXPECT_EQ(agent.requests().at(0).query.at("address"), "0x7f0000001000");
}

TEST(AgentCommands, HeatDrawsIntoAFile) {
    ScriptedAgent agent(kHeat);
    const std::string file = testing::TempDir() + "heat.svg";
    const auto output = agent.run({"heat", "--target", "a b", "--svg", file});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    EXPECT_EQ(output.standard_output, "");
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_THAT(text.str(), HasSubstr("</svg>"));
    std::filesystem::remove(file);
    EXPECT_EQ(agent.requests().at(0).query.at("target"), "a b");
    EXPECT_THAT(agent.run({"heat", "--pid", "812"}).standard_output, HasSubstr("0x7f0000200000"));
    EXPECT_EQ(agent.run({"heat", "--svg", "/nowhere/heat.svg"}).exit.code, 1);
}

TEST(AgentCommands, TopIsOnePageWhereThereIsNoTerminal) {
    ScriptedAgent agent(kStatus);
    const auto output = agent.run({"top"});
    EXPECT_EQ(output.exit.code, 0);
    EXPECT_THAT(output.standard_output, AllOf(HasSubstr("fast hits 94.7 %"), Not(HasSubstr("\x1b"))));
    EXPECT_EQ(agent.requests().size(), 1U);
}

TEST(AgentCommands, ReloadTellsWhatHasChanged) {
    ScriptedAgent agent(R"({"file": "/etc/agent.yaml", "mode": "move", "loaded_at": "2026-12-01T05:00:00Z",
        "changed": ["mode", "targets"], "needs_restart": ["state"], "in_service": true})");
    const auto output = agent.run({"reload"});
    EXPECT_EQ(output.exit.code, 0);
    EXPECT_EQ(output.standard_output,
              "/etc/agent.yaml was read; changed: mode, targets\nneeds a restart to take effect: state\n");
    EXPECT_EQ(agent.requests().at(0).method, "POST");
}

TEST(AgentCommands, EachMistakeOfAReloadIsALine) {
    ScriptedAgent agent(R"({"status": 422, "code": "invalid-config", "detail": "a\nb",
                           "mistakes": ["agent.yaml:1:2: a", "agent.yaml:3:4: b"]})",
                        422);
    const auto output = agent.run({"reload"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_EQ(output.standard_error,
              "memtide: agent.yaml:1:2: a\nmemtide: agent.yaml:3:4: b\n"
              "memtide: the configuration of before stays in service\n");
    EXPECT_THAT(agent.run({"reload", "--json"}).standard_output, HasSubstr("invalid-config"));
}

TEST(AgentCommands, ABusyAgentIsNotOneThatIsNotThere) {
    ScriptedAgent agent(R"({"status": 503, "code": "busy", "detail": "the agent is busy"})", 503);
    EXPECT_THAT(agent.run({"plan"}).standard_error, AllOf(HasSubstr("the agent is busy (busy)"),
                                                          Not(HasSubstr("does memtide-tiering-agent run"))));
}

TEST(AgentCommands, WhatMakesNoSenseIsNotAsked) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"agent", "explain"},
                                               {"agent", "explain", "1"},
                                               {"agent", "explain", "x", "0x1"},
                                               {"agent", "explain", "0", "0x1"},
                                               {"agent", "explain", "1", "zz"},
                                               {"agent", "explain", "1", "0x11112222333344445"},
                                               {"agent", "heat", "--pid", "1", "--target", "x"},
                                               {"agent", "heat", "--json", "--svg", "/tmp/x"},
                                               {"agent", "nonsense"}})
        EXPECT_EQ(memtide("", words).exit.code, 2) << words.back();
    EXPECT_THAT(memtide("", {"agent", "explain", "1", "zz"}).standard_error,
                HasSubstr("is not a hexadecimal address"));
    EXPECT_THAT(memtide("", {"agent", "--help"}).standard_output,
                AllOf(HasSubstr("wss"), HasSubstr("plan"), HasSubstr("explain"), HasSubstr("heat"),
                      HasSubstr("top"), HasSubstr("reload")));
}

// Whether this kernel can do it or not.
TEST(AgentRun, BecomesTheProgramAndSaysInOneLineWhatItIsWithout) {
    const auto output = memtide("", {"agent", "run", "--", "sh", "-c", "echo \"$1\"; exit 7", "sh", "-x y"});
    EXPECT_EQ(output.exit.code, 7);
    EXPECT_EQ(output.standard_output, "-x y\n");
    EXPECT_THAT(output.standard_error, testing::MatchesRegex("memtide: [^\n]*sh[^\n]*\n"));
    EXPECT_THAT(output.standard_error,
                testing::AnyOf(HasSubstr("is watched as any other program: "),
                               HasSubstr("one that is started later watches sh, too")));
}

TEST(AgentRun, SaysWhatCannotBeRunAsShellsDo) {
    const auto missing = memtide("", {"agent", "run", "--", "/no/such/program"});
    EXPECT_EQ(missing.exit.code, 127);
    EXPECT_THAT(missing.standard_error, HasSubstr("memtide: /no/such/program: No such file or directory\n"));
    EXPECT_EQ(memtide("", {"agent", "run", "--", "/etc"}).exit.code, 126);
    EXPECT_EQ(memtide("", {"agent", "run"}).exit.code, 2);
}

}  // namespace
}  // namespace memtide::cli
