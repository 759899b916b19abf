// Balancer: huge pages of targets that let them be split.
#include <algorithm>

#include "common/log/log.h"
#include "tiering-agent/balance/balancer.h"
#include "tiering-agent/observe/processor_time.h"

namespace memtide::agent {

using std::chrono::steady_clock;

bool Balancer::may_shape(const std::stop_token& stop) const {
    const auto wants = [](const TieringTarget& target) { return target.huge_pages == HugePageRule::kSplit; };
    return parts_.shaper != nullptr && can_shape_ && !stop.stop_requested() &&
           std::ranges::any_of(options_.config.targets, wants);
}

// None as long as the faster tier has room for whatever is warm.
Balancer::Splits Balancer::pages_to_split(std::uint8_t fast, Time now) {
    constexpr std::size_t kMostAtOnce = 64;
    const std::vector<Space> taking_part = spaces(fast);
    const Pair tiers{.fast = fast, .slow = static_cast<std::uint8_t>(fast + 1)};
    Splits splits;
    for (const Space& space : taking_part) {
        const HugePages& huge_pages = watches_.at(space.id).huge_pages();
        splits.undecided += huge_pages.undecided();
        const std::size_t most = kMostAtOnce - splits.pages.size();
        for (const std::uint64_t page : huge_pages.to_split(*space.heat, tiers, {}, most, now))
            splits.pages.emplace_back(space.id, page);
    }
    if (splits.pages.empty() && splits.undecided == 0) return splits;
    const auto prepared = prepare(fast, now);
    if (!prepared) return {};
    const Pair& pair = prepared->pair;
    const std::uint64_t warm = warm_slow_pages(taking_part, pair, prepared->options);
    const std::uint64_t room = pair.fast_free - std::min(pair.fast_free, pair.reserve);
    return warm < kPagesPerHuge || warm <= room ? Splits{} : splits;
}

// Answers how many pages were made of huge ones, since now it has to be seen which of them are warm, and how
// many are in huge ones that a few windows more will tell of.
std::uint64_t Balancer::split_huge_pages(std::uint8_t fast, const std::stop_token& stop) {
    if (!may_shape(stop)) return 0;
    const auto now = steady_clock::now();
    const auto before = processor_time();
    const Splits splits = pages_to_split(fast, now);
    std::uint64_t split = 0;
    for (const auto& [space, page] : splits.pages) {
        if (!may_shape(stop) || steady_clock::now() >= now + options_.longest_move) break;
        Watch& watch = watches_.at(space);
        if (mode_of(watch.target()) == TieringMode::kMove && shape(watch, page, true, now)) ++split;
    }
    moving_ += processor_time() - before;
    if (split > 0) log::info("huge pages", {{"split", split}});
    return (split + splits.undecided) * kPagesPerHuge;
}

void Balancer::join_huge_pages(const std::stop_token& stop) {
    constexpr std::size_t kMostAtOnce = 8;  // of each process: they are copied
    if (!may_shape(stop)) return;
    const auto now = steady_clock::now();
    const auto before = processor_time();
    std::uint64_t joined = 0;
    for (auto& [space, watch] : watches_) {
        if (mode_of(watch.target()) != TieringMode::kMove) continue;
        for (const std::uint64_t page : watch.huge_pages().to_join(watch.heat(), {}, kMostAtOnce, now))
            if (may_shape(stop) && steady_clock::now() < now + options_.longest_move &&
                shape(watch, page, false, now))
                ++joined;
    }
    moving_ += processor_time() - before;
    if (joined > 0) log::info("huge pages", {{"made_whole", joined}});
}

// Whether it was done.
bool Balancer::shape(Watch& watch, std::uint64_t page, bool split, Time now) {
    const auto done =
        split ? parts_.shaper->split(watch.process(), page) : parts_.shaper->join(watch.process(), page);
    if (split)
        watch.huge_pages().note_split(page, done.has_value(), now);
    else
        watch.huge_pages().note_joined(page, done.has_value(), now);
    if (done) {
        const std::lock_guard lock(mutex_);
        auto& target = status_.targets[watch.target()];
        ++(split ? target.split_huge : target.joined_huge);
        return true;
    }
    log::debug("a huge page stays as it is", {{"pid", watch.process().pid}, {"why", done.error()}});
    if (done.error().code == ErrorCode::kPermission || done.error().code == ErrorCode::kUnavailable) {
        can_shape_ = false;
        log::warning("huge pages cannot be split here", {{"error", done.error()}});
    }
    return false;
}

}  // namespace memtide::agent
