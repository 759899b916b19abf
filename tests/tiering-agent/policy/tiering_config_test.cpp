#include "tiering-agent/policy/tiering_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace memtide::agent {
namespace {

std::optional<std::uint32_t> users(const std::string& name) {
    return name == "redis" ? std::optional<std::uint32_t>(112) : std::nullopt;
}

Result<TieringConfig> read(const std::string& text) {
    auto document = YamlDocument::parse(text, "agent.yaml");
    if (!document) return std::unexpected(document.error());
    TieringConfig config = read_tiering(document->root().require("tiering"), users);
    if (auto good = document->check(); !good) return std::unexpected(good.error());
    return config;
}
std::string mistake(const std::string& text) {
    const auto config = read(text);
    return config ? "none" : config.error().message;
}
// Of one target that has these keys.
std::string mistake_in_target(const std::string& keys) {
    return mistake("tiering:\n  targets:\n    - {" + keys + "}\n");
}

TEST(TieringConfig, OneLineIsTheWholeMachine) {
    const auto config = read("tiering: {mode: move}\n");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->mode, TieringMode::kMove);
    ASSERT_EQ(config->targets.size(), 1U);
    EXPECT_EQ(config->targets[0], (TieringTarget{.name = "all"}));
    EXPECT_TRUE(config->tiers.empty());
}

TEST(TieringConfig, ObservesUnlessItIsToldToMove) {
    EXPECT_EQ(read("tiering: {}\n")->mode, TieringMode::kObserve);
    EXPECT_EQ(read("tiering: {}\n")->targets[0].mode, TieringMode::kObserve);
    EXPECT_EQ(read("tiering: {mode: off}\n")->targets[0].mode, TieringMode::kOff);
}

TEST(TieringConfig, TheWayOfLookingCanBeChosen) {
    EXPECT_EQ(read("tiering: {}\n")->tracker, TrackerChoice::kAuto);
    EXPECT_EQ(read("tiering: {tracker: damon}\n")->tracker, TrackerChoice::kDamon);
    EXPECT_EQ(read("tiering: {tracker: soft-dirty}\n")->tracker, TrackerChoice::kSoftDirty);
    EXPECT_EQ(read("tiering: {tracker: hint-faults}\n")->tracker, TrackerChoice::kHintFaults);
    EXPECT_EQ(read("tiering: {tracker: rwp}\n")->tracker, TrackerChoice::kRwp);
    const auto mistake = read("tiering: {tracker: pebs}\n");
    ASSERT_FALSE(mistake);
    EXPECT_THAT(mistake.error().message,
                testing::HasSubstr("auto, damon, hint-faults, rwp, samples, soft-dirty"));
}

TEST(TieringConfig, WhatHoldsMovesBack) {
    EXPECT_TRUE(read("tiering: {}\n")->spread);
    EXPECT_EQ(read("tiering: {}\n")->move_threads, 0U);
    EXPECT_EQ(read("tiering: {move_threads: 4}\n")->move_threads, 4U);
    EXPECT_FALSE(read("tiering: {move_threads: 0}\n"));
    EXPECT_FALSE(read("tiering: {spread: false}\n")->spread);
    EXPECT_EQ(read("tiering: {}\n")->targets[0].pressure, 0.1);
    EXPECT_EQ(read("tiering: {targets: [{name: a, pressure: 25%}]}\n")->targets[0].pressure, 0.25);
    EXPECT_FALSE(read("tiering: {targets: [{name: a, pressure: 200%}]}\n"));
}

TEST(TieringConfig, ModeOfATargetIsNoMoreThanThatOfTheWhole) {
    const auto observed = read("tiering: {mode: observe, targets: [{name: a, mode: move}]}\n");
    EXPECT_EQ(observed->targets[0].mode, TieringMode::kObserve);
    const auto moved = read("tiering: {mode: move, targets: [{name: a, mode: 'off'}]}\n");
    EXPECT_EQ(moved->targets[0].mode, TieringMode::kOff);
}

TEST(TieringConfig, IsReadInFull) {
    const auto config = read(R"(tiering:
  mode: move
  tiers:
    - {name: dram, nodes: [0, 2]}
    - {name: cxl, nodes: 1-1}
    - {name: other, nodes: rest}
  targets:
    - name: redis
      match:
        unit: [redis.service, "redis@*.service"]
        cgroup: /system.slice
        exe: redis-server
        command: "*:6379*"
        command_regex: ":63[0-9]+"
        user: redis
        uid: 7
        pid: [42]
      children: false
      mode: move
      weight: 500
      min_fast: 25%
      max_fast: 8GiB
      tiers: [dram, cxl]
      exclude:
        - {kind: [stack, heap], at_most: 1MiB, at_least: 64KiB}
        - {name: /dev/shm/*, locked: true, mbind: true, hugetlb: true}
        - {address: 0x7f0000000000-0x7f0000100000}
      rate_limit: 200MiB/s
      hints: false
      far: true
    - name: rest
)");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->tiers, (std::vector<TierOverride>{{.name = "dram", .nodes = {0, 2}},
                                                        {.name = "cxl", .nodes = {1}},
                                                        {.name = "other", .rest = true}}));
    ASSERT_EQ(config->targets.size(), 2U);
    const TieringTarget& redis = config->targets[0];
    EXPECT_EQ(redis.name, "redis");
    EXPECT_EQ(redis.match.units.size(), 2U);
    EXPECT_EQ(redis.match.cgroups.size(), 1U);
    EXPECT_EQ(redis.match.exes.size(), 1U);
    EXPECT_EQ(redis.match.commands.size(), 1U);
    EXPECT_EQ(redis.match.command_regexes.size(), 1U);
    EXPECT_EQ(redis.match.uids, (std::vector<std::uint32_t>{7, 112}));
    EXPECT_EQ(redis.match.pids, std::vector<int>{42});
    EXPECT_FALSE(redis.children);
    EXPECT_EQ(redis.weight, 500U);
    EXPECT_EQ(redis.min_fast, (FastShare{.percent = 25, .bytes = {}}));
    EXPECT_EQ(redis.max_fast, (FastShare{.percent = std::nullopt, .bytes = gibibytes(8)}));
    EXPECT_EQ(redis.tiers, (std::vector<std::string>{"dram", "cxl"}));
    ASSERT_EQ(redis.exclude.size(), 3U);
    EXPECT_EQ(redis.exclude[0].kinds, (std::vector{VmaKind::kStack, VmaKind::kHeap}));
    EXPECT_EQ(redis.exclude[0].at_most, mebibytes(1));
    EXPECT_TRUE(redis.exclude[1].locked && redis.exclude[1].own_policy && redis.exclude[1].hugetlb);
    EXPECT_EQ(redis.exclude[2].addresses, (VirtualRange{0x7f0000000000, 0x7f0000100000}));
    EXPECT_EQ(redis.rate_limit, mebibytes(200));
    EXPECT_FALSE(redis.hints);
    EXPECT_EQ(redis.far, FarLimits{});
    EXPECT_TRUE(config->targets[1].hints);
    EXPECT_TRUE(config->targets[1].match.is_everything());
}

TEST(TieringConfig, MistakesSayWhereAndWhatIsAllowed) {
    EXPECT_EQ(mistake("tiering:\n  mode: moove\n"),
              "agent.yaml:2:9: \"moove\" is none of move, observe, off; did you mean \"move\"?");
    EXPECT_NE(mistake("tiering:\n  tires: []\n").find("agent.yaml:2:3: "), std::string::npos);
    EXPECT_NE(mistake("tiering:\n  tires: []\n").find("tiers"), std::string::npos);
    EXPECT_NE(mistake("tiering: [1]\n").find("agent.yaml:1:10: must be a map"), std::string::npos);
    EXPECT_NE(mistake("tiering: {targets: {a: 1}}\n").find("must be a list"), std::string::npos);
    EXPECT_NE(mistake("tiering: {targets: []}\n").find("empty list"), std::string::npos);
    EXPECT_NE(mistake("tiering: {targets: [redis]}\n").find("must be a map"), std::string::npos);
}

TEST(TieringConfig, MistakesInTiers) {
    EXPECT_NE(mistake("tiering: {tiers: []}\n").find("empty list"), std::string::npos);
    EXPECT_NE(mistake("tiering: {tiers: [{nodes: [0]}]}\n").find("missing \"name\""), std::string::npos);
    EXPECT_NE(mistake("tiering: {tiers: [{name: a}]}\n").find("missing \"nodes\""), std::string::npos);
    EXPECT_NE(mistake("tiering: {tiers: [{name: a, nodes: [x]}]}\n").find("whole number"), std::string::npos);
    EXPECT_NE(mistake("tiering: {tiers: [{name: a, nodes: rset}]}\n").find("or rest"), std::string::npos);
    EXPECT_NE(mistake("tiering: {tiers: [{name: A B, nodes: [0]}]}\n"), "none");
    EXPECT_EQ(mistake("tiering:\n  tiers:\n    - {name: a, nodes: [0]}\n    - {name: b, nodes: 0-1}\n"),
              "agent.yaml:4:7: node 0 is in two tiers, \"a\" and \"b\"");
    EXPECT_NE(
        mistake("tiering: {tiers: [{name: a, nodes: [0]}, {name: a, nodes: [1]}]}\n").find("named \"a\""),
        std::string::npos);
    EXPECT_NE(
        mistake("tiering: {tiers: [{name: a, nodes: rest}, {name: b, nodes: rest}]}\n").find("take the rest"),
        std::string::npos);
}

TEST(TieringConfig, MistakesInATarget) {
    const std::vector<std::pair<std::string, std::string>> mistakes{
        {"name: A_B", "agent.yaml:3:14: "},
        {"mode: fast", "is none of"},
        {"children: perhaps", "true or false"},
        {"weight: 0", "from 1 to 10000"},
        {"wieght: 1", "weight"},
        {"min_fast: 101%", "from 0% to 100%"},
        {"min_fast: a%", "from 0% to 100%"},
        {"max_fast: much", "a share such as 25%"},
        {"min_fast: 50%, max_fast: 25%", "min_fast 50% is more than max_fast 25%"},
        {"min_fast: 2GiB, max_fast: 1GiB", "min_fast 2GiB is more than max_fast 1GiB"},
        {"tiers: [cxl]", "there is no tier \"cxl\": without `tiering.tiers` they are fast, slow"},
        {"tiers: [slow-1]", "there is no tier"},
        {"tiers: []", "empty list"},
        {"tiers: [fast, fast]", "twice"},
        {"rate_limit: fast", "bytes per second"},
        {"rate_limit: 1MiB", "at least 2MiB"},
        {"far: 3", "true or false"},
        {"hints: maybe", "true or false"},
        {"far: {}", "is empty"},
        {"far: {after: 1s}", "from 5s to 24h"},
        {"far: {after: 10}", "has no unit"},
        {"far: {pressure: 0}", "share of time from 0.01% to 50%"},
        {"far: {refaults: 20%}", "share of the working set, a minute, from 0.01% to 10%"},
        {"far: {afer: 10min}", "afer"},
    };
    for (const auto& [keys, what] : mistakes)
        EXPECT_NE(mistake_in_target(keys).find(what), std::string::npos)
            << keys << ": " << mistake_in_target(keys);
    EXPECT_EQ(mistake_in_target("tiers: [fast, slow, slow-2], rate_limit: 2MiB, max_fast: 0%"), "none");
    EXPECT_NE(mistake("tiering: {tiers: [{name: dram, nodes: [0]}], targets: [{tiers: [dran]}]}\n")
                  .find("known are dram"),
              std::string::npos);
}

TEST(TieringConfig, MistakesInAMatch) {
    const std::vector<std::pair<std::string, std::string>> mistakes{
        {"", "is empty; leave `match` out"},
        {"unti: a.service", "unit"},
        {"unit: redis", "write redis.service or redis.scope"},
        {"unit: []", "empty list"},
        {"cgroup: redis.service", "below the root of cgroup v2"},
        {"cgroup: /a/", "must not end with /"},
        {"exe: bin/redis", "absolute path"},
        {"exe: '[a'", "needs its ]"},
        {"command: ''", "must not be empty"},
        {"command_regex: '('", "("},
        {"uid: root", "whole number"},
        {"uid: 4294967295", "whole number"},
        {"user: nobody-here", "no user \"nobody-here\""},
        {"pid: 1", "from 2"},
    };
    for (const auto& [keys, what] : mistakes) {
        const std::string said = mistake_in_target("match: {" + keys + "}");
        EXPECT_NE(said.find(what), std::string::npos) << keys << ": " << said;
        EXPECT_TRUE(said.starts_with("agent.yaml:3:")) << said;
    }
}

TEST(TieringConfig, LimitsOfTheFarTierAreReadAndNobodyHasThemUnasked) {
    const auto config = read(
        "tiering: {targets: [{match: {uid: 1}, far: {after: 2min, pressure: 0.5%, refaults: 1%}}, {far: "
        "false}]}\n");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->targets[0].far,
              (FarLimits{.after = std::chrono::minutes(2), .pressure = 0.005, .refaults = 0.01}));
    EXPECT_EQ(config->targets[1].far, std::nullopt);
    EXPECT_EQ(read("tiering: {mode: move}\n")->targets[0].far, std::nullopt);
}

TEST(TieringConfig, MistakesInAnExclusion) {
    const std::vector<std::pair<std::string, std::string>> mistakes{
        {"", "would exclude everything"},
        {"kind: stak", "did you mean \"stack\""},
        {"kidn: stack", "kind"},
        {"address: 0x1000", "must be a range"},
        {"address: 0x2000-0x1000", "must be a range"},
        {"address: 1000-2000", "must be a range"},
        {"at_least: big", ""},
        {"at_least: 2MiB, at_most: 1MiB", "at_least 2MiB is more than at_most 1MiB"},
        {"locked: false", "can only be true"},
        {"name: '['", "needs its ]"},
    };
    for (const auto& [keys, what] : mistakes) {
        const std::string said = mistake_in_target("exclude: [{" + keys + "}]");
        EXPECT_NE(said, "none") << keys;
        EXPECT_NE(said.find(what), std::string::npos) << keys << ": " << said;
    }
    EXPECT_NE(mistake_in_target("exclude: {kind: stack}").find("must be a list"), std::string::npos);
}

TEST(TieringConfig, MistakesBetweenTargets) {
    EXPECT_NE(mistake("tiering: {targets: [{name: a}, {name: b, match: {uid: 1}}]}\n")
                  .find("target \"b\" is never reached: \"a\" before it matches every process"),
              std::string::npos);
    EXPECT_NE(
        mistake("tiering: {targets: [{name: a, match: {uid: 1}}, {name: a}]}\n").find("another target named"),
        std::string::npos);
    EXPECT_NE(mistake("tiering: {targets: [{match: {uid: 1}, min_fast: 60%}, {min_fast: 50%}]}\n")
                  .find("come to 110%"),
              std::string::npos);
}

TEST(TieringConfig, AllMistakesAreToldAtOnce) {
    const std::string said = mistake("tiering:\n  mode: x\n  targets:\n    - {weight: 0, far: x}\n");
    EXPECT_EQ(std::ranges::count(said, '\n'), 2) << said;
}

TEST(SystemUsers, KnowRootAndNobodyElsesName) {
    EXPECT_EQ(system_users()("root"), 0U);
    EXPECT_EQ(system_users()("no such user"), std::nullopt);
}

}  // namespace
}  // namespace memtide::agent
