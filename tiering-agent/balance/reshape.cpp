// Balancer: huge pages of targets that let them be split.
#include <algorithm>

#include "common/log/log.h"
#include "tiering-agent/balance/balancer.h"
#include "tiering-agent/observe/processor_time.h"

namespace memtide::agent {

using std::chrono::steady_clock;

// None as long as the faster tier has room for whatever is warm.
Balancer::Splits Balancer::pages_to_split(const Prepared& prepared, std::uint8_t fast, Time now) const {
    constexpr std::size_t kMostAtOnce = 64;
    const std::vector<Space> taking_part = spaces(fast);
    const std::uint64_t warm = warm_slow_pages(taking_part, prepared.pair, prepared.options);
    const std::uint64_t room =
        prepared.pair.fast_free - std::min(prepared.pair.fast_free, prepared.pair.reserve);
    Splits splits;
    if (warm < kPagesPerHuge || warm <= room) return splits;
    for (const Space& space : taking_part) {
        const HugePages& huge_pages = watches_.at(space.id).huge_pages();
        splits.undecided += huge_pages.undecided();
        for (const std::uint64_t page : huge_pages.to_split(*space.heat, prepared.pair, prepared.options,
                                                            kMostAtOnce - splits.pages.size(), now))
            splits.pages.emplace_back(space.id, page);
    }
    return splits;
}

// Answers how many pages were made of huge ones, since now it has to be seen which of them are warm, and how
// many are in huge ones that a few windows more will tell of.
std::uint64_t Balancer::reshape(std::uint8_t fast, const std::stop_token& stop) {
    constexpr std::size_t kMostJoined = 8;  // each is copied
    const auto wants = [](const TieringTarget& target) { return target.huge_pages == HugePageRule::kSplit; };
    if (parts_.shaper == nullptr || !can_shape_ || !std::ranges::any_of(options_.config.targets, wants))
        return 0;
    const auto now = steady_clock::now();
    const auto prepared = prepare(fast, now);
    if (!prepared) return 0;
    const auto before = processor_time();
    const auto may_go_on = [&] {
        return can_shape_ && !stop.stop_requested() && steady_clock::now() < now + options_.longest_move;
    };
    std::uint64_t split = 0;
    std::uint64_t joined = 0;
    const Splits splits = pages_to_split(*prepared, fast, now);
    for (const auto& [space, page] : splits.pages)
        if (Watch& watch = watches_.at(space);
            may_go_on() && mode_of(watch.target()) == TieringMode::kMove && shape(watch, page, true, now))
            ++split;
    for (auto& [space, watch] : watches_) {
        if (fast != 0 || mode_of(watch.target()) != TieringMode::kMove) continue;
        for (const std::uint64_t page :
             watch.huge_pages().to_join(watch.heat(), prepared->options, kMostJoined, now))
            if (may_go_on() && shape(watch, page, false, now)) ++joined;
    }
    moving_ += processor_time() - before;
    if (split + joined > 0) log::info("huge pages", {{"split", split}, {"made_whole", joined}});
    return (split + splits.undecided) * kPagesPerHuge;
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
