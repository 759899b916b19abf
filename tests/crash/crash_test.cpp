// Kills the manager core with SIGKILL at every journal write, every effect and every step of the store in a
// dozen scenarios, again while it recovers, with files torn as by a power failure, and wants every job done
// exactly once and every byte back (scenarios.cpp says what is checked).
//
// MEMTIDE_CRASH_SHARE (from 0 to 1, 1 if unset) runs only a share of the stories, for sanitizers.
// MEMTIDE_CRASH_STORY=SCENARIO:SEED:POINT runs that one 20 times, and shows what the managers log.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/crash/campaign.h"

namespace memtide::fm::crash {
namespace {

TEST(Crash, AtEveryPointOfEveryScenarioTheJobIsDoneOnce) {
    void* memory = mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    Tally& tally = *new (memory) Tally;
    const char* given = std::getenv("MEMTIDE_CRASH_SHARE");
    const double share = given == nullptr ? 1 : std::min(1.0, std::atof(given));
    const auto began = std::chrono::steady_clock::now();
    if (const char* story = std::getenv("MEMTIDE_CRASH_STORY"))
        run_story(tally, story, 20);
    else
        run_campaign(tally, share);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::cout << fmt::format(
                     R"({{"test": "crash", "kill_points": {}, "kills_in_recovery": {}, "torn_writes": {}, )"
                     R"("stories": {}, "violations": {}, "seconds": {:.0f}}})",
                     tally.kill_points.load(), tally.double_kills.load(), tally.torn.load(),
                     tally.scenarios.load(), tally.violations.load(), took.count())
              << std::endl;
    EXPECT_EQ(tally.violations, 0);
    const bool all = std::getenv("MEMTIDE_CRASH_STORY") == nullptr;
    EXPECT_GE(tally.kill_points, all ? 2000 * share : 1) << "the sync points are gone";
}

}  // namespace
}  // namespace memtide::fm::crash
