#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace memtide::fm::crash {

// Figures of all processes that took part; in shared memory.
struct Tally {
    std::atomic<int> kill_points{0};   // lives that were ended by SIGKILL
    std::atomic<int> double_kills{0};  // of them, lives that were recovering from the one before
    std::atomic<int> torn{0};          // kills after which files were torn as by a power failure
    std::atomic<int> scenarios{0};     // stories that were brought to their end
    std::atomic<int> violations{0};
};

// Kills managers at every point of every scenario, some of them again while they recover, tears files after
// some, and lets the last life of each story end. Violations are said on standard output. `share`: how much
// of it, from 0 to 1.
void run_campaign(Tally& tally, double share);

// One story of it, again and again: "SCENARIO:SEED:POINT" as a violation names them.
void run_story(Tally& tally, const std::string& name, int times);

}  // namespace memtide::fm::crash
