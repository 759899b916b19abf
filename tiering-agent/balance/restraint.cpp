#include "tiering-agent/balance/restraint.h"

#include <algorithm>

#include "tiering-agent/far/cgroup_memory.h"
#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {
namespace {

constexpr std::chrono::seconds kAskEvery{1};
// What a target without a limit moves at most, for a share of it to be less: pages a second, 1 GiB.
constexpr double kFullRate = 1 << 18;

double seconds(std::chrono::steady_clock::duration time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

void Restraint::note(const Files& files, const std::vector<TieringTarget>& targets,
                     const std::vector<Target>& now, double latency, Time time) {
    while (targets_.size() < targets.size())
        targets_.push_back({.pace = MovePace({.pressure = targets[targets_.size()].pressure})});
    if (time - asked_ >= kAskEvery) {
        const double passed = std::min(seconds(time - asked_), 10.0);
        asked_ = time;
        for (std::size_t i = 0; i < targets.size(); ++i) {
            OfTarget& one = targets_[i];
            const auto stalled = read_stalled(files, now[i].cgroup);
            MovePace::Interval interval{
                .seconds = passed, .latency = latency, .moved = now[i].moved_pages != one.moved_pages};
            if (stalled && one.stalled && now[i].cgroup == one.cgroup)
                interval.pressure = std::chrono::duration<double>(*stalled - *one.stalled).count() / passed;
            one.pace.note(interval);
            one.stalled = stalled;
            one.cgroup = now[i].cgroup;
            one.moved_pages = now[i].moved_pages;
        }
    }
    const double passed = std::min(1.0, seconds(time - filled_));
    filled_ = time;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        OfTarget& one = targets_[i];
        const double limit = double(targets[i].rate_limit.value >> kPageShift);
        const double share = one.pace.share();
        // Half of it in each direction. A huge page can be saved up for.
        one.rate = limit == 0 && share == 1 ? 0 : (limit == 0 ? kFullRate : limit) * share / 2;
        const double most = std::max(one.rate, double{kPagesPerHuge});
        one.up = std::min(most, one.up + one.rate * passed);
        one.down = std::min(most, one.down + one.rate * passed);
    }
}

bool Restraint::spend(std::size_t target, bool up, std::uint32_t pages) {
    OfTarget& one = targets_.at(target);
    if (one.rate == 0) return true;
    double& left = up ? one.up : one.down;
    if (left < pages) return false;
    left -= pages;
    return true;
}

}  // namespace memtide::agent
