#include "tiering-agent/balance/inspector.h"

#include <cerrno>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/tiering-agent/balance/made_up_machine.h"
#include "tiering-agent/balance/inspector_json.h"

namespace memtide::agent {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kBegin = MadeUpMachine::kBegin;

std::uint64_t address_of(std::uint64_t page) { return kBegin + (page << kPageShift); }

class Inspecting : public testing::Test {
  protected:
    Inspecting() { machine_.put_process(MadeUpMachine::kPid); }
    Inspector inspector() { return Inspector(machine_.balancer()); }
    Explanation explain(std::uint64_t page) {
        const auto answer = inspector().explain(MadeUpMachine::kPid, address_of(page));
        EXPECT_TRUE(answer) << answer.error().message;
        return answer.value_or(Explanation{});
    }
    void observe_only() { machine_.options_.config.mode = TieringMode::kObserve; }
    // What the page map says of one page: on which node its frame is.
    void put_frame(std::uint64_t page, int node) const {
        const std::uint64_t frame = (0x8000000ULL >> kPageShift) * static_cast<unsigned>(node) + 5;
        const std::uint64_t word = (std::uint64_t{1} << 63) | frame;
        const std::string path = machine_.files_.absolute("proc/100/pagemap");
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_GE(file, 0);
        EXPECT_EQ(::pwrite(file, &word, sizeof word,
                           static_cast<off_t>((MadeUpPages::kFirst + page) * sizeof word)),
                  ssize_t{sizeof word});
        ::close(file);
    }
    MadeUpMachine machine_;
};

TEST_F(Inspecting, AWorkingSetIsWhatWasTouchedWithinATime) {
    machine_.put_process(200, "other", 0, 0, 100);
    machine_.run(3);
    const WorkingSets sets = inspector().working_sets();
    ASSERT_EQ(sets.targets.size(), 1U);
    EXPECT_EQ(sets.targets[0].name, "all");
    EXPECT_EQ(sets.targets[0].processes, 2U);
    EXPECT_EQ(sets.targets[0].present_pages, 2 * MadeUpMachine::kPages);
    EXPECT_EQ(sets.targets[0].all_fast_pages, 500U);
    EXPECT_EQ(sets.targets[0].rss, Bytes{2 * MadeUpMachine::kPages << kPageShift});
    EXPECT_EQ(sets.targets[0].touched_pages.back(), 2 * MadeUpMachine::kPages) << "all of it came just now";
    EXPECT_EQ(sets.targets[0].fast_pages.back(), 500U);
    ASSERT_EQ(sets.cgroups.size(), 1U);
    EXPECT_EQ(sets.cgroups[0].name, "/system.slice/worker.service");
    EXPECT_EQ(sets.cgroups[0].processes, 2U);
    ASSERT_EQ(sets.processes.size(), 2U);
    EXPECT_EQ(sets.processes[0].target, "all");
}

TEST_F(Inspecting, WhatIsColdLeavesTheWorkingSet) {
    Files& files = machine_.files_;
    Watch watch(1, {MadeUpMachine::kPid, 5}, 0);
    const TieringTarget target{.name = "all"};
    Watch::Time now{std::chrono::hours(1)};
    for (int second = 0; second <= 200; second += 2) {
        ASSERT_TRUE(watch.refresh(files, target, now));
        ASSERT_TRUE(watch.look(machine_.pages_, {0, 1}, now));
        now += std::chrono::seconds(2);
    }
    EXPECT_EQ(watch.watched_for(), std::chrono::seconds(200));
    EXPECT_EQ(watch.heat().at(MadeUpPages::kFirst).untouched, 200 / 3);
    EXPECT_EQ(watch.heat().at(MadeUpPages::kFirst + 1'000).untouched, 0);
    EXPECT_FALSE(watch.history().rows().empty());
    EXPECT_GT(watch.memory(), watch.heat().memory());
}

TEST_F(Inspecting, ThePlanIsWhatWouldBeMovedAndMovesNothing) {
    observe_only();
    machine_.run(20);
    const PlanPreview plan = inspector().plan();
    EXPECT_EQ(plan.mode, TieringMode::kObserve);
    ASSERT_EQ(plan.pairs.size(), 1U);
    EXPECT_EQ(plan.pairs[0].fast, "fast");
    EXPECT_EQ(plan.pairs[0].slow, "slow");
    EXPECT_EQ(plan.pairs[0].promoted_pages, 200U);
    EXPECT_EQ(plan.pairs[0].demoted_pages, 200U);
    EXPECT_LT(plan.pairs[0].hit_before, 0.1);
    EXPECT_GT(plan.pairs[0].hit_after, 0.9);
    EXPECT_GT(plan.pairs[0].coldest_promoted, plan.pairs[0].warmest_demoted);
    ASSERT_EQ(plan.pairs[0].targets.size(), 1U);
    EXPECT_EQ(plan.pairs[0].targets[0].promoted_pages, 200U);
    EXPECT_THAT(plan.left_out, IsEmpty());
    EXPECT_EQ(machine_.pages_.moved, 0U);
}

TEST_F(Inspecting, APlanSaysWhoHasNoPartInIt) {
    machine_.options_.config.targets[0].mode = TieringMode::kObserve;
    machine_.run(20);
    const PlanPreview plan = inspector().plan();
    EXPECT_EQ(plan.pairs.at(0).promoted_pages, 0U);
    ASSERT_EQ(plan.left_out.size(), 1U);
    EXPECT_EQ(plan.left_out[0].target, "all");
    EXPECT_THAT(plan.left_out[0].why, HasSubstr("observe"));
}

TEST_F(Inspecting, WithOneTierThereIsNothingToPlan) {
    machine_.tree_.remove("sys/devices/system/node/node1");
    machine_.put_process(MadeUpMachine::kPid, "worker", MadeUpMachine::kPages);
    machine_.run(2);
    const PlanPreview plan = inspector().plan();
    EXPECT_THAT(plan.pairs, IsEmpty());
    EXPECT_THAT(plan.note, HasSubstr("one tier"));
}

TEST_F(Inspecting, AHotPageOfTheSlowTierGoesUpNext) {
    observe_only();
    machine_.run(20);
    put_frame(1'000, 1);
    const Explanation hot = explain(1'000);
    EXPECT_EQ(hot.comm, "worker");
    EXPECT_EQ(hot.target, "all");
    EXPECT_EQ(hot.membership, "matches target \"all\"");
    EXPECT_EQ(hot.vma.range, (VirtualRange{0x7f0000000000, 0x7f0000800000}));
    EXPECT_TRUE(hot.is_present);
    EXPECT_EQ(hot.node, 1);
    EXPECT_EQ(hot.tier, "slow");
    ASSERT_TRUE(hot.heat);
    EXPECT_EQ(hot.heat->windows, 20U);
    EXPECT_GT(hot.heat->lasting, 0.9);
    ASSERT_TRUE(hot.rank);
    EXPECT_LT(hot.rank->warmer_pages, 200U);
    EXPECT_EQ(hot.rank->fast_pages, 500U);
    EXPECT_EQ(hot.rank->pages, MadeUpMachine::kPages);
    EXPECT_THAT(hot.why_not, ElementsAre(HasSubstr("observe: nothing is moved")));
    EXPECT_EQ(hot.verdict, "the next exchange takes it up to fast, if it were moved");
    EXPECT_THAT(explain(0).verdict, HasSubstr("takes it down to slow"));
    EXPECT_THAT(explain(2'000).verdict, HasSubstr("not worth a move"));
}

TEST_F(Inspecting, WhatWasJustMovedRests) {
    machine_.run(20);
    ASSERT_GT(machine_.pages_.moved, 0U);
    const Explanation moved = explain(1'000);
    EXPECT_THAT(moved.why_not, IsEmpty());
    ASSERT_TRUE(moved.last_move);
    EXPECT_EQ(moved.last_move->to, "fast");
    EXPECT_EQ(moved.last_move->error, "");
    EXPECT_THAT(moved.verdict, AllOf(HasSubstr("stays"), HasSubstr("slow")));
}

TEST_F(Inspecting, WhatTheKernelDidNotMoveSaysWhy) {
    machine_.pages_.error = EBUSY;
    machine_.run(20);
    const Explanation kept = explain(0);  // which was to go down
    ASSERT_TRUE(kept.last_move);
    EXPECT_EQ(kept.last_move->error, "EBUSY");
    EXPECT_TRUE(kept.last_move->rests);
    EXPECT_THAT(kept.verdict, HasSubstr("could not be moved"));
}

TEST_F(Inspecting, MappingsThatStaySayWhy) {
    machine_.tree_.put("proc/100/numa_maps", "7f0000000000 bind:1 anon=2048 N1=2048\n");
    machine_.run(3);
    const Explanation bound = explain(5);
    EXPECT_THAT(bound.why_not, ElementsAre(AllOf(HasSubstr("memory policy"), HasSubstr("bind:1"))));
    EXPECT_FALSE(bound.heat);
    EXPECT_EQ(bound.verdict, "it stays where it is");
}

TEST_F(Inspecting, ExcludedMappingsNameTheRule) {
    Exclusion exclusion;
    exclusion.kinds = {VmaKind::kAnonymous};
    machine_.options_.config.targets[0].exclude = {exclusion};
    machine_.run(3);
    EXPECT_THAT(explain(5).why_not, ElementsAre(HasSubstr("target \"all\" excludes it (kind anonymous)")));
}

TEST_F(Inspecting, ProcessesThatAreNotLookedAtSayWhy) {
    machine_.options_.least_rss = mebibytes(9);
    machine_.run(3);
    EXPECT_THAT(explain(5).why_not,
                ElementsAre(AllOf(HasSubstr("8MiB"), HasSubstr("less than 9MiB are not looked at"))));
    machine_.tree_.put_process({.pid = 1, .start_time = 1});
    machine_.tree_.put("proc/1/maps", "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n");
    const auto init = inspector().explain(1, kBegin);
    ASSERT_TRUE(init);
    EXPECT_EQ(init->target, "");
    EXPECT_THAT(init->why_not, Contains(HasSubstr("is pid 1: never touched")));
}

// Nothing is tried that the kernel would refuse page by page.
TEST_F(Inspecting, ProcessesWhoseCpusetHasOneTierStaySayWhy) {
    machine_.tree_.put("proc/100/status", "Mems_allowed_list:\t1\nVmLck:\t0 kB\nHugetlbPages:\t0 kB\n");
    machine_.run(8);
    EXPECT_EQ(machine_.pages_.moved, 0U);
    EXPECT_THAT(explain(1'000).why_not, ElementsAre(HasSubstr("its cpuset (cpuset.mems) has nodes 1:")));
    machine_.tree_.put("proc/100/status", "Mems_allowed_list:\t0-1\nVmLck:\t0 kB\nHugetlbPages:\t0 kB\n");
    machine_.run(40);
    EXPECT_GT(machine_.pages_.moved, 0U);
}

TEST_F(Inspecting, WhatIsNotThereIsNamed) {
    machine_.run(1);
    const auto nobody = inspector().explain(99'999, kBegin);
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(nobody.error().message, HasSubstr("no process 99999"));
    const auto nowhere = inspector().explain(MadeUpMachine::kPid, 0x1000);
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().message, "nothing is mapped at 0x1000 in process 100 (worker)");
}

TEST_F(Inspecting, PagesOfATargetThatIsOnlyObservedStay) {
    machine_.options_.config.targets[0].mode = TieringMode::kObserve;
    machine_.run(5);
    const Explanation watched = explain(1'000);
    EXPECT_THAT(watched.why_not, ElementsAre(HasSubstr("has no part in it: its mode is observe")));
    EXPECT_EQ(watched.verdict, "it stays: its target has no part in exchanges");
    ASSERT_TRUE(watched.heat);
}

TEST_F(Inspecting, HeatIsOfTheProcessesThatWereAskedFor) {
    machine_.put_process(200, "other", 0, 0, 0);
    machine_.run(2);
    const auto all = inspector().heat(std::nullopt, std::nullopt);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->processes.size(), 2U);
    EXPECT_THAT(all->tiers, ElementsAre("fast", "slow"));
    const auto one = inspector().heat(200, std::nullopt);
    ASSERT_TRUE(one);
    ASSERT_EQ(one->processes.size(), 1U);
    EXPECT_EQ(one->processes[0].comm, "other");
    EXPECT_EQ(inspector().heat(std::nullopt, "all")->processes.size(), 2U);
    EXPECT_THAT(inspector().heat(std::nullopt, "none").error().message, HasSubstr("no target \"none\""));
    EXPECT_THAT(inspector().heat(7, std::nullopt).error().message, HasSubstr("process 7 is not looked at"));
}

TEST_F(Inspecting, AnswersAreJson) {
    observe_only();
    machine_.run(20);
    const auto sets = to_json(inspector().working_sets());
    EXPECT_EQ(sets.at("within_seconds").as_array().size(), WorkingSets::kWithin.size());
    EXPECT_EQ(sets.at("targets").at(0).at("looked_at"), MadeUpMachine::kPages << kPageShift);
    const auto plan = to_json(inspector().plan());
    EXPECT_EQ(plan.at("pairs").at(0).at("up"), 200U << kPageShift);
    const auto page = to_json(explain(1'000));
    EXPECT_EQ(page.at("address"), "0x7f00003e8000");
    EXPECT_EQ(page.at("mapping").at("permissions"), "rw-p");
    EXPECT_EQ(page.at("may_move"), false);
    EXPECT_TRUE(page.at("last_move").is_null());
    EXPECT_EQ(to_json(*inspector().heat(std::nullopt, std::nullopt)).at("processes").at(0).at("pid"),
              MadeUpMachine::kPid);
}

}  // namespace
}  // namespace memtide::agent
