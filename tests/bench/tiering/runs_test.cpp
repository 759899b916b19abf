#include "tests/bench/tiering/runs.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/tiering/workload.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

SavedRun some_run(unsigned number) {
    return {"tiering-gups", "agent", "thp=off", number, {{"hit", 0.5 + number}, {"bytes_moved", 4e15}}};
}

class TieringSavedRuns : public testing::Test {
  protected:
    SavedRuns open() {
        auto saved = SavedRuns::open(path_);
        EXPECT_TRUE(saved) << saved.error().message;
        return saved ? std::move(*saved) : SavedRuns();
    }
    test::TempFolder folder_;
    std::string path_ = folder_.file("runs.jsonl");
};

TEST_F(TieringSavedRuns, AreThereLater) {
    {
        SavedRuns saved = open();
        ASSERT_TRUE(saved.add(some_run(0)));
        ASSERT_TRUE(saved.add(some_run(1)));
        EXPECT_NE(saved.find("tiering-gups", "agent", "thp=off", 1), nullptr);
    }
    const SavedRuns saved = open();
    const Figures* const figures = saved.find("tiering-gups", "agent", "thp=off", 1);
    ASSERT_NE(figures, nullptr);
    EXPECT_EQ(*figures, some_run(1).figures);
    EXPECT_EQ(saved.find("tiering-gups", "agent", "thp=off", 2), nullptr);
    EXPECT_EQ(saved.find("tiering-gups", "agent", "thp=on", 1), nullptr);
    EXPECT_EQ(saved.find("tiering-gups", "none", "thp=off", 1), nullptr);
    EXPECT_EQ(saved.find("tiering-zipf", "agent", "thp=off", 1), nullptr);
}

TEST_F(TieringSavedRuns, LineThatWasBrokenOffIsMadeAgain) {
    ASSERT_TRUE(open().add(some_run(0)));
    std::ofstream(path_, std::ios::app) << R"({"bench":"tiering-gups","sys)";
    ASSERT_TRUE(open().add(some_run(1)));
    const SavedRuns saved = open();
    EXPECT_NE(saved.find("tiering-gups", "agent", "thp=off", 0), nullptr);
    EXPECT_NE(saved.find("tiering-gups", "agent", "thp=off", 1), nullptr);
}

TEST_F(TieringSavedRuns, LineThatIsNoneIsNamed) {
    ASSERT_TRUE(open().add(some_run(0)));
    std::ofstream(path_, std::ios::app) << "{}\n";
    const auto saved = SavedRuns::open(path_);
    ASSERT_FALSE(saved);
    EXPECT_THAT(saved.error().message, HasSubstr("line 2"));
    EXPECT_FALSE(SavedRuns::open(folder_.path() + "/none/runs.jsonl"));
}

TEST_F(TieringSavedRuns, WithoutAFileTheyAreKeptForNow) {
    SavedRuns saved;
    ASSERT_TRUE(saved.add(some_run(0)));
    EXPECT_NE(saved.find("tiering-gups", "agent", "thp=off", 0), nullptr);
}

TEST(TieringFigureRows, FigureOfOneOfSeveralHasItsUnit) {
    ASSERT_NE(row_of("hit_over_oracle_heavy"), nullptr);
    EXPECT_EQ(row_of("hit_over_oracle_heavy")->name, "hit_over_oracle");
    EXPECT_EQ(row_of("hit_heavy")->name, "hit");
    EXPECT_EQ(row_of("resume_seconds_max")->unit, "s");
    EXPECT_EQ(row_of("hits"), nullptr);
}

TEST(TieringFigureRows, MedianIsTheMiddleOrTheMeanOfTheMiddleTwo) {
    EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
    EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
    EXPECT_DOUBLE_EQ(median({7}), 7);
}

Workload workload_of(const std::string& bench) {
    Workload workload;
    workload.bench = bench;
    workload.seconds = 10;
    return workload;
}

TEST(TieringWorkload, EveryFigureHasARow) {
    RunFigures run;
    for (auto* const figure :
         {&run.convergence_seconds, &run.recovery_seconds, &run.hit_after_shift, &run.regret_over_unavoidable,
          &run.agent_cpu_percent, &run.agent_cpu_seconds, &run.agent_resident_mb})
        *figure = 1;
    for (const std::string& bench : benches())
        for (const auto& [name, value] : figures_for(bench, run)) EXPECT_NE(row_of(name), nullptr) << name;
}

TEST(TieringWorkload, RatioDividesTheFootprint) {
    Workload workload = workload_of("tiering-gups");
    for (const unsigned slower : {1U, 2U, 4U, 8U}) {
        workload.ratio = "1:" + std::to_string(slower);
        const auto plan = guest_plan(workload);
        ASSERT_TRUE(plan) << plan.error().message;
        const double fast = 640.0 / (slower + 1);
        EXPECT_NEAR(static_cast<double>(plan->fast.value >> 20), fast + 96, 16) << slower;
        EXPECT_NEAR(static_cast<double>(plan->slow.value >> 20), 640 - fast + 160, 16) << slower;
    }
    for (const char* const wrong : {"1:0", "2:1", "1:", "1:x", "1:4x", "1", ":", "1:65"}) {
        workload.ratio = wrong;
        EXPECT_FALSE(guest_plan(workload)) << wrong;
    }
}

TEST(TieringWorkload, WhatIsMeasuredDifferentlyHasOtherSettings) {
    const Workload workload = workload_of("tiering-gups");
    Workload other = workload;
    EXPECT_EQ(settings_text(workload), settings_text(other));
    other.ratio = "1:4";
    EXPECT_NE(settings_text(workload), settings_text(other));
    other = workload;
    other.reads = true;
    EXPECT_NE(settings_text(workload), settings_text(other));
}

TEST(TieringWorkload, KillsHaveTheirTimesAndLosses) {
    const std::string lives =
        R"({"life":{"number":1,"seconds":0.2,"answered":null,"window":null,"moved":false,"hung":false}})"
        "\n"
        R"({"life":{"number":2,"seconds":1.2,"answered":0.4,"window":null,"moved":false,"hung":false}})"
        "\n"
        R"({"life":{"number":3,"seconds":1.4,"answered":0.8,"window":2.5,"moved":true,"hung":true}})"
        "\n";
    const std::string killer = R"({"killer":{"kills":3,"hung":1}})"
                               "\n";
    const std::string intact = R"({"summary":{"data":"intact"}})";
    const Workload workload = workload_of("tiering-kill");
    const auto figures = read_figures(workload, lives + killer + intact);
    ASSERT_TRUE(figures) << figures.error().message;
    EXPECT_EQ(figures->at("kills"), 3);
    EXPECT_EQ(figures->at("kills_moving"), 1);
    EXPECT_EQ(figures->at("hung"), 1);
    EXPECT_EQ(figures->at("lost"), 0);
    EXPECT_NEAR(figures->at("resume_seconds"), 0.6, 1e-9);
    EXPECT_NEAR(figures->at("resume_seconds_max"), 0.8, 1e-9);
    EXPECT_NEAR(figures->at("first_window_seconds_max"), 2.5, 1e-9);
    EXPECT_EQ(read_figures(workload, lives + killer + R"({"summary":{"data":"page 3"}})")->at("lost"), 1);
    EXPECT_FALSE(read_figures(workload, lives + killer));
    EXPECT_FALSE(read_figures(workload, lives + intact));
    EXPECT_THAT(read_figures(workload, lives + "Killed\n").error().message, HasSubstr("Killed"));
}

TEST(TieringWorkload, SeveralLoadsHaveFiguresOfTheirOwn) {
    const auto load = [](const std::string& name, double hit, int fast) {
        std::string lines = "LOAD " + name +
                            "\n"
                            R"({"start":{"hot_bytes":1,"fast_capacity_bytes":1,"copy_bytes_per_second":1}})"
                            "\n";
        for (const char* const second : {"0", "1", "2"})
            lines += R"({"t":)" + std::string(second) + R"(,"phase":0,"hit":)" + std::to_string(hit) +
                     R"(,"oracle":0.8,"ops_per_second":9,"moved_pages":1,"undone_pages":0,"fast_bytes":)" +
                     std::to_string(fast) +
                     R"(,"vmstat":{"pgmigrate_success":0}})"
                     "\n";
        return lines + R"({"summary":{"stall_p999_us":1,"data":"intact"}})"
                       "\n";
    };
    const Workload workload = workload_of("tiering-several");
    const auto figures =
        read_figures(workload, load("heavy", 0.8, 60) + load("light", 0.2, 30) + load("idle", 0, 10));
    ASSERT_TRUE(figures) << figures.error().message;
    EXPECT_NEAR(figures->at("hit_over_oracle_heavy"), 1, 1e-9);
    EXPECT_NEAR(figures->at("hit_over_oracle_light"), 0.25, 1e-9);
    EXPECT_NEAR(figures->at("fast_share_heavy"), 0.6, 1e-9);
    EXPECT_NEAR(figures->at("fast_share_idle"), 0.1, 1e-9);
    EXPECT_FALSE(figures->contains("hit_over_oracle_idle"));
    for (const auto& [name, value] : *figures) EXPECT_NE(row_of(name), nullptr) << name;
    EXPECT_FALSE(read_figures(workload, load("heavy", 0.8, 60)));
}

TEST(TieringWorkload, KillerStartsTheAgentItself) {
    const auto script = workload_script(workload_of("tiering-kill"), {"/b/load", "/b/killer", "/b/redis"},
                                        {"'/b/agent' --config x"}, 60);
    ASSERT_TRUE(script);
    EXPECT_THAT(*script, HasSubstr("'/b/killer' '--kills' '100' '--agent'"));
    EXPECT_THAT(*script, Not(HasSubstr("$watch")));
}

}  // namespace
}  // namespace memtide::bench
