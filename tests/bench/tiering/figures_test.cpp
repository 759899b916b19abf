#include "tests/bench/tiering/figures.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/tiering/guest.h"

namespace memtide::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kStart =
    R"({"start":{"pid":7,"pages":100,"hot_bytes":1000,"fast_capacity_bytes":4000,"phases":2,)"
    R"("copy_bytes_per_second":500,"fast_bytes":1,"slow_bytes":2}})"
    "\n";
constexpr const char* kSummary = R"({"summary":{"seconds":9,"stall_p999_us":1500,"data":"intact"}})"
                                 "\n";

std::string sample(double seconds, unsigned phase, double hit, unsigned moved = 0, unsigned failed = 0) {
    return fmt::format(
        R"({{"t":{},"phase":{},"hit":{},"oracle":0.9,"ops_per_second":{},"moved_pages":{},"undone_pages":{},)"
        R"("vmstat":{{"pgmigrate_success":{},"pgmigrate_fail":{}}},"watched":{{"cpu_seconds":{},)"
        R"("resident_bytes":{}}}}})"
        "\n",
        seconds, phase, hit, 100 + seconds, moved, moved / 4, 10 + moved, failed, 5 + seconds / 10,
        (20 << 20) - static_cast<int>(seconds));
}

// Phase 0 rises to 0.8 within 3 s, phase 1 begins at 6 s and stays where it is.
LoadRun two_phases() {
    const std::string text = kStart + sample(0, 0, 0.2) + sample(1, 0, 0.2) + sample(2, 0, 0.5) +
                             sample(3, 0, 0.79) + sample(4, 0, 0.8, 40) + sample(5, 0, 0.8, 40) +
                             sample(6, 1, 0.1, 40) + sample(7, 1, 0.1, 80, 10) + sample(9, 1, 0.1, 90, 10) +
                             kSummary;
    auto run = parse_load_run(text);
    EXPECT_TRUE(run) << run.error().message;
    return run ? *run : LoadRun{};
}

TEST(TieringFigures, PhaseEndsWhereTheNextBegins) {
    const auto phases = phase_figures(two_phases());
    ASSERT_EQ(phases.size(), 2U);
    EXPECT_DOUBLE_EQ(phases[0].seconds, 6);
    EXPECT_DOUBLE_EQ(phases[1].seconds, 3);
    EXPECT_DOUBLE_EQ(phases[1].first_hit, 0.1);
}

TEST(TieringFigures, RecoveryIsTheFirstTimeAtNinetyFivePercentOfTheSteadyState) {
    const auto phases = phase_figures(two_phases());
    EXPECT_DOUBLE_EQ(phases[0].steady_hit, 0.8);
    EXPECT_EQ(phases[0].recovery_seconds, 3.0);
}

TEST(TieringFigures, WhatDoesNotRiseHasNotRecovered) {
    EXPECT_FALSE(phase_figures(two_phases())[1].recovery_seconds);
    EXPECT_FALSE(run_figures(two_phases(), 1).recovery_seconds);
}

TEST(TieringFigures, LossIsTheAreaBetweenOracleAndHit) {
    const auto phases = phase_figures(two_phases());
    // 0.7 s; from 0.2 to 0.5; to 0.79; to 0.8; 0.1 s twice
    EXPECT_NEAR(phases[0].lost_seconds, 0.7 + 0.55 + 0.255 + 0.105 + 0.1 + 0.1, 1e-9);
    EXPECT_NEAR(phases[1].lost_seconds, 0.8 * 3, 1e-9);
}

TEST(TieringFigures, UnavoidableIsDetectionAndHalfOfTheCopy) {
    const LoadRun run = two_phases();
    // 1000 bytes at 500 a second take 2 s.
    EXPECT_NEAR(unavoidable_seconds(run, phase_figures(run)[0], 3), 0.7 * (3 + 1), 1e-9);
    const auto figures = run_figures(run, 0);
    ASSERT_TRUE(figures.regret_over_unavoidable);
    EXPECT_NEAR(*figures.regret_over_unavoidable, figures.regret_seconds / (0.7 + 0.8), 1e-9);
}

TEST(TieringFigures, MovesAreCountedFromTheFirstSampleOn) {
    const LoadRun run = two_phases();
    EXPECT_EQ(counted(run, "pgmigrate_success"), 90U);
    EXPECT_EQ(counted(run, "pgmigrate_success", 7), 10U);
    EXPECT_EQ(counted(run, "pgmigrate_success", 10), 0U);
    EXPECT_EQ(counted(run, "no_such_counter"), 0U);
    const auto figures = run_figures(run, 1);
    EXPECT_DOUBLE_EQ(figures.bytes_moved, 90 * 4096);
    EXPECT_DOUBLE_EQ(figures.failed_moves, 0.1);
    EXPECT_DOUBLE_EQ(figures.wasted_moves, 22.0 / 90);
}

TEST(TieringFigures, AgentCostIsThatOfTheRun) {
    const auto figures = run_figures(two_phases(), 1);
    EXPECT_NEAR(figures.agent_cpu_seconds.value_or(0), 0.9, 1e-9);
    EXPECT_NEAR(figures.agent_cpu_percent.value_or(0), 10, 1e-9);
    EXPECT_NEAR(figures.agent_resident_mb.value_or(0), 20, 1e-9);
    EXPECT_DOUBLE_EQ(figures.stall_p999_ms, 1.5);
}

TEST(TieringFigures, LoadThatLostDataOrDidNotEndIsAnError) {
    const std::string samples = kStart + sample(0, 0, 0.2) + sample(1, 0, 0.2);
    EXPECT_THAT(parse_load_run(samples).error().message, HasSubstr("its end"));
    EXPECT_THAT(parse_load_run(samples + R"({"summary":{"stall_p999_us":1,"data":"page 3 is gone"}})")
                    .error()
                    .message,
                HasSubstr("page 3 is gone"));
    EXPECT_THAT(parse_load_run(samples + "Killed\n").error().message, HasSubstr("line 4"));
    EXPECT_THAT(parse_load_run(samples + R"({"t":1})").error().message, HasSubstr("line 4"));
    EXPECT_THAT(parse_load_run(kSummary).error().message, HasSubstr("too little"));
}

TEST(TieringGuest, OnlyTheKernelsOwnTieringSwitchesItOn) {
    const std::vector<std::string> load{"/b/load", "--size", "1MiB"};
    const auto none = guest_script(System::kNone, {}, {}, load, 9);
    EXPECT_THAT(none, HasSubstr("echo 0 >/proc/sys/kernel/numa_balancing"));
    EXPECT_THAT(none, HasSubstr("timeout -k 5 9 '/b/load' '--size' '1MiB' $watch\n"));
    EXPECT_THAT(none, HasSubstr("'/b/load' --companion 10"));
    EXPECT_THAT(none, Not(HasSubstr("agent")));
    EXPECT_THAT(none, HasSubstr("watch=\n"));
    const auto kernel = guest_script(System::kKernel, {}, {}, load, 9);
    EXPECT_THAT(kernel, HasSubstr("echo 2 >/proc/sys/kernel/numa_balancing"));
    EXPECT_THAT(kernel, HasSubstr("echo 1 >/sys/kernel/mm/numa/demotion_enabled"));
}

TEST(TieringGuest, AgentIsStartedBeforeTheLoadAndWatched) {
    const auto script = guest_script(System::kAgent, {}, {"/b/agent --config x"}, {"/b/load"}, 9);
    EXPECT_LT(script.find("exec /b/agent --config x"), script.find("timeout"));
    EXPECT_THAT(script, HasSubstr("watch=\"--watch $agent\""));
    EXPECT_THAT(script, HasSubstr("'/b/load' $watch"));
    EXPECT_THAT(script, HasSubstr("exit 77"));
    EXPECT_THAT(script, HasSubstr("echo 0 >/proc/sys/kernel/numa_balancing"));
}

}  // namespace
}  // namespace memtide::bench
