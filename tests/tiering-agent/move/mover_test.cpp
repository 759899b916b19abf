#include "tiering-agent/move/mover.h"

#include <cerrno>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

// Two nodes with room for so many pages.
class FakeNodes final : public UnitMover {
  public:
    Result<std::vector<int>> move(int pid, std::span<const std::uint64_t> pages, int node) override {
        const std::lock_guard lock(mutex);
        callers.insert(std::this_thread::get_id());
        if (gone.contains(pid)) return fail(ErrorCode::kNotFound, "no such process");
        if (forbidden.contains(pid)) return fail(ErrorCode::kPermission, "its cpuset");
        largest_call = std::max(largest_call, pages.size());
        std::vector<int> states;
        for (const std::uint64_t page : pages) {
            int error = 0;
            if (busy.contains(page))
                error = EBUSY;
            else if (room[node] == 0)
                error = ENOMEM;
            if (error == 0) {
                --room[node];
                ++room[1 - node];
            }
            states.push_back(error);
        }
        return states;
    }

    std::mutex mutex;
    std::set<std::thread::id> callers;
    std::map<int, std::uint64_t> room{{0, 10}, {1, 10'000}};
    std::set<int> gone;
    std::set<int> forbidden;
    std::set<std::uint64_t> busy;
    std::size_t largest_call = 0;
};

ExchangePlan plan_of(std::uint64_t down, std::uint64_t up, std::uint64_t space = 1) {
    ExchangePlan plan;
    for (std::uint64_t i = 0; i < down; ++i) plan.demotions.push_back({space, 1'000 + i, 1, 0});
    for (std::uint64_t i = 0; i < up; ++i) plan.promotions.push_back({space, 5'000 + i, 1, 255});
    return plan;
}

struct Heard {
    std::uint64_t moved = 0;
    std::map<int, std::uint64_t> errors;
    MoveHeard listener() {
        return [this](const Move&, bool, int error) { error == 0 ? ++moved : ++errors[error]; };
    }
};

MoveJob job_of(const ExchangePlan& plan, const FakeNodes& nodes) {
    return {.plan = &plan,
            .pid_of_space = {{1, 100}, {2, 200}},
            .fast = {{0, nodes.room.at(0)}},
            .slow = {{1, nodes.room.at(1)}},
            .reserve = 0,
            .batch_pages = 50};
}

constexpr auto kGoOn = [] { return true; };

TEST(Mover, RoomIsMadeBeforeItIsUsed) {
    FakeNodes nodes;
    const ExchangePlan plan = plan_of(500, 500);
    Heard heard;
    const MoveReport report = carry_out(job_of(plan, nodes), nodes, heard.listener(), kGoOn);
    EXPECT_EQ(report.demoted_pages, 500U);
    EXPECT_EQ(report.promoted_pages, 500U);
    EXPECT_TRUE(report.failed_pages.empty());
    EXPECT_EQ(heard.moved, 1'000U);
    EXPECT_LE(nodes.largest_call, 50U);
}

TEST(Mover, TheReserveStaysFree) {
    FakeNodes nodes;
    const ExchangePlan plan = plan_of(0, 20);
    MoveJob job = job_of(plan, nodes);
    job.reserve = 4;
    Heard heard;
    EXPECT_EQ(carry_out(job, nodes, heard.listener(), kGoOn).promoted_pages, 6U);
    EXPECT_EQ(nodes.room[0], 4U);
}

TEST(Mover, ANodeThatIsFullAfterAllIsNotAskedAgain) {
    FakeNodes nodes;
    const ExchangePlan plan = plan_of(0, 200);
    MoveJob job = job_of(plan, nodes);
    job.fast = {{0, 200}};  // others took it meanwhile
    Heard heard;
    const MoveReport report = carry_out(job, nodes, heard.listener(), kGoOn);
    EXPECT_EQ(report.promoted_pages, 10U);
    EXPECT_EQ(report.failed_pages.at(ENOMEM), 40U) << "of the first batch alone";
}

TEST(Mover, WhatCannotMoveIsToldWithItsReasonAndTheRestGoesOn) {
    FakeNodes nodes;
    nodes.busy = {1'003, 1'004};
    const ExchangePlan plan = plan_of(100, 100);
    Heard heard;
    const MoveReport report = carry_out(job_of(plan, nodes), nodes, heard.listener(), kGoOn);
    EXPECT_EQ(report.demoted_pages, 98U);
    EXPECT_EQ(report.promoted_pages, 100U);
    EXPECT_EQ(heard.errors, (std::map<int, std::uint64_t>{{EBUSY, 2}}));
}

TEST(Mover, AProcessThatEndedOrMayNotBeMovedHoldsNobodyUp) {
    FakeNodes nodes;
    nodes.gone = {100};
    ExchangePlan plan = plan_of(20, 20);
    const ExchangePlan other = plan_of(20, 20, 2);
    plan.demotions.insert(plan.demotions.end(), other.demotions.begin(), other.demotions.end());
    Heard heard;
    const MoveReport report = carry_out(job_of(plan, nodes), nodes, heard.listener(), kGoOn);
    EXPECT_EQ(report.gone.front(), 1U);
    EXPECT_EQ(report.demoted_pages, 20U);
    nodes.gone.clear();
    nodes.forbidden = {100};
    const MoveReport forbidden = carry_out(job_of(plan, nodes), nodes, heard.listener(), kGoOn);
    EXPECT_EQ(forbidden.failed_pages.at(EACCES), 40U);
}

TEST(Mover, NobodyLeavesForPagesThatCannotCome) {
    FakeNodes nodes;
    nodes.forbidden = {200};
    ExchangePlan plan = plan_of(1'000, 0);
    plan.promotions = plan_of(0, 1'000, 2).promotions;
    Heard heard;
    const MoveReport report = carry_out(job_of(plan, nodes), nodes, heard.listener(), kGoOn);
    EXPECT_LE(report.demoted_pages, 50U) << "one batch, before it was known";
    EXPECT_EQ(report.failed_pages.at(EACCES), 1'000U) << "all are told, so that they rest";
}

TEST(Mover, AFailingBatchIsNotTheEndOfTheOthers) {
    FakeNodes nodes;
    for (std::uint64_t page = 5'000; page < 5'050; ++page) nodes.busy.insert(page);
    const ExchangePlan plan = plan_of(200, 200);
    Heard heard;
    const MoveReport report = carry_out(job_of(plan, nodes), nodes, heard.listener(), kGoOn);
    EXPECT_EQ(report.promoted_pages, 150U);
    EXPECT_LE(report.demoted_pages, 200U);
}

TEST(Mover, StopsBetweenBatches) {
    FakeNodes nodes;
    const ExchangePlan plan = plan_of(500, 500);
    Heard heard;
    int turns = 0;
    const auto report = carry_out(job_of(plan, nodes), nodes, heard.listener(), [&] { return turns++ < 2; });
    EXPECT_EQ(report.demoted_pages, 100U);
}

TEST(Mover, HugePagesCountAsWhatTheyAre) {
    FakeNodes nodes;
    ExchangePlan plan;
    for (std::uint64_t i = 0; i < 4; ++i)
        plan.promotions.push_back({1, i * kPagesPerHuge, kPagesPerHuge, 255});
    MoveJob job = job_of(plan, nodes);
    job.fast = {{0, 2 * kPagesPerHuge + 100}};
    job.batch_pages = 2'048;
    Heard heard;
    EXPECT_EQ(carry_out(job, nodes, heard.listener(), kGoOn).promoted_pages, 2 * kPagesPerHuge);
    EXPECT_EQ(heard.moved, 2U);
}

// On this machine: the pages of this process, to the node where they are.
TEST(Mover, TheKernelsMoverTellsOfEachPage) {
    std::vector<char> memory(1 << 16, 'x');
    const std::uint64_t first = (reinterpret_cast<std::uint64_t>(memory.data()) >> kPageShift) + 1;
    const auto mover = make_unit_mover();
    const auto states = mover->move(0, std::vector{first, first + 1, std::uint64_t{1} << 35}, 0);
    ASSERT_TRUE(states) << states.error().message;
    EXPECT_EQ((*states)[0], 0);
    EXPECT_NE((*states)[2], 0) << "nothing is mapped there";
    EXPECT_EQ(mover->move(0x3fffff, std::vector{first}, 0).error().code, ErrorCode::kNotFound);
}

TEST(Mover, BatchesAreMovedByAsManyThreadsAsHelp) {
    FakeNodes nodes;
    nodes.room = {{0, 10'000}, {1, 10'000}};
    nodes.busy = {1'003, 5'777};
    const ExchangePlan plan = plan_of(4'096, 4'096);
    MoveJob job = job_of(plan, nodes);
    job.batch_pages = 2'048;
    ThreadChoice threads(4);
    job.threads = &threads;
    Heard heard;
    const MoveReport report = carry_out(job, nodes, heard.listener(), kGoOn);
    EXPECT_EQ(report.demoted_pages, 4'095U);
    EXPECT_EQ(report.promoted_pages, 4'095U);
    EXPECT_EQ(report.failed_pages.at(EBUSY), 2U);
    EXPECT_EQ(heard.moved, 2 * 4'095U);
    EXPECT_EQ(heard.errors.at(EBUSY), 2U);
}

// Each way of moving is tried in turn; fewer units than threads are moved by as many as there are.
TEST(Mover, HugePagesAreMovedSideBySide) {
    FakeNodes nodes;
    nodes.room = {{0, 10'000}, {1, 10'000}};
    ExchangePlan plan;
    for (std::uint64_t i = 0; i < 64; ++i) plan.promotions.push_back({1, i * 512, 512, 255});
    nodes.room[0] = 64 * 512;
    MoveJob job = job_of(plan, nodes);
    job.batch_pages = 2'048;
    ThreadChoice threads(16);
    for (unsigned known = 1; known < 16; known *= 2)
        for (int i = 0; i < 4; ++i) threads.note(known, 2'048, std::chrono::milliseconds(1));
    job.threads = &threads;
    const MoveReport report = carry_out(job, nodes, [](const Move&, bool, int) {}, kGoOn);
    EXPECT_EQ(report.promoted_pages, 64 * 512U);
    EXPECT_GT(nodes.callers.size(), 1U);
}

TEST(Mover, AProcessThatEndsUnderSeveralThreadsIsGone) {
    FakeNodes nodes;
    nodes.gone = {100};
    nodes.room = {{0, 10'000}, {1, 10'000}};
    const ExchangePlan plan = plan_of(0, 4'096);
    MoveJob job = job_of(plan, nodes);
    job.batch_pages = 2'048;
    ThreadChoice threads(2);
    for (int i = 0; i < 4; ++i) threads.note(1, 2'048, std::chrono::milliseconds(1));
    job.threads = &threads;
    const MoveReport report = carry_out(job, nodes, [](const Move&, bool, int) {}, kGoOn);
    EXPECT_EQ(report.gone, std::vector<std::uint64_t>{1});
    EXPECT_EQ(report.promoted_pages, 0U);
}

}  // namespace
}  // namespace memtide::agent
