// `memtide agent status`.
#include "cli/render/agent.h"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace memtide::cli
