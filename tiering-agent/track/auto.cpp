#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "tiering-agent/policy/way_choice.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Way = WayChoice::Way;

// Soft-dirty bits or DAMON, whichever fits a process.
class AutoTracker final : public Tracker {
  public:
    AutoTracker(std::unique_ptr<Tracker> writes, std::unique_ptr<Tracker> accesses, double slowdown)
        : writes_(std::move(writes)), accesses_(std::move(accesses)), slowdown_(slowdown) {}

    [[nodiscard]] std::string_view name() const override { return "soft-dirty and damon"; }
    [[nodiscard]] std::string_view sees() const override { return "reads and writes"; }
    microseconds take_kernel_time() override { return accesses_->take_kernel_time(); }
    [[nodiscard]] Sentinel* sentinel() override { return accesses_->sentinel(); }
    [[nodiscard]] bool is_sharp() const override { return is_sharp_; }
    Result<> refresh() override {
        if (auto done = accesses_->refresh(); !done) return done;
        return writes_->refresh();
    }
    [[nodiscard]] std::size_t most_at_once() const override { return accesses_->most_at_once(); }
    [[nodiscard]] milliseconds duration(milliseconds window) const override {
        return std::max(accesses_->duration(window), is_sharp_ ? milliseconds(0) : window);
    }

    Result<> begin(int pid, const WindowWish& wish) override {
        if (std::exchange(is_new_round_, false)) {
            ++round_;
            std::erase_if(choices_, [&](const auto& one) { return one.second.round + kRoundsKept < round_; });
            is_sharp_ = true;
        }
        Choice& choice = choices_.try_emplace(pid, Choice{.way = WayChoice(slowdown_)}).first->second;
        choice.round = round_;
        choice.way.set_only_accesses(wish.mostly_huge && !writes_->ranks_huge_pages());
        if (choice.looked && choice.now == Way::kWrites) choice.way.note_cost(wish.disturbance);
        choice.now = choice.way.next();
        choice.is_trial = choice.way.is_trial();
        choice.begun = steady_clock::now();
        if (choice.now == Way::kAccesses) {
            // How much is touched a trial tells at a small part of the cost of telling what.
            constexpr int kPartOfATrial = 8;
            WindowWish cheaper = wish;
            if (choice.is_trial) cheaper.budget /= kPartOfATrial;
            auto begun = accesses_->begin(pid, cheaper);
            if (begun || begun.error().code == ErrorCode::kNotFound) return begun;
            log::debug("DAMON cannot be had", {{"pid", pid}, {"error", begun.error()}});
            choice.now = Way::kWrites;
            choice.is_trial = false;
        }
        is_sharp_ = false;
        return writes_->begin(pid, wish);
    }

    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        is_new_round_ = true;
        const auto found = choices_.find(pid);
        if (found == choices_.end()) return fail(ErrorCode::kNotFound, "no window was begun");
        Choice& choice = found->second;
        auto look = (choice.now == Way::kWrites ? *writes_ : *accesses_)
                        .look(pid, ranges, tiers, choice.is_trial ? only_places(visit) : visit);
        if (!look) return look;
        choice.looked = true;
        const std::uint64_t touched = look->all_touched_pages.value_or(look->touched_pages);
        const std::chrono::duration<double> faulting = touched * look->touch_cost;
        choice.way.note(choice.now, touched, faulting / (steady_clock::now() - choice.begun));
        log::debug(
            "window",
            {{"pid", pid}, {"by", name_of(choice.now)}, {"trial", choice.is_trial}, {"touched", touched}});
        // What another way sees of it is no news.
        if (choice.is_trial) look = Look{.touch_cost = look->touch_cost};
        look->sees_reads = choice.way.way() == Way::kAccesses;
        look->begins_anew = choice.way.way() != std::exchange(choice.told, choice.way.way());
        if (look->begins_anew)
            log::info("a process is watched in another way", {{"pid", pid}, {"by", name_of(choice.told)}});
        return look;
    }

  private:
    static constexpr std::uint64_t kRoundsKept = 64;
    struct Choice {
        WayChoice way;
        Way now = Way::kWrites;   // of the window
        Way told = Way::kWrites;  // chosen at the last look
        bool is_trial = false;
        steady_clock::time_point begun{};
        bool looked = false;      // at all
        std::uint64_t round = 0;  // of the last window
    };

    [[nodiscard]] std::string_view name_of(Way way) const {
        return way == Way::kWrites ? writes_->name() : accesses_->name();
    }

    // Pages are where they are; how warm they are the trial does not say.
    Visit only_places(const Visit& visit) {
        return [this, &visit](std::uint64_t page, std::span<const PageSeen> seen) {
            seen_.assign(seen.begin(), seen.end());
            for (PageSeen& one : seen_) one.touched = one.windows = 0;
            visit(page, seen_);
        };
    }

    std::unique_ptr<Tracker> writes_;
    std::unique_ptr<Tracker> accesses_;
    double slowdown_;
    std::map<int, Choice> choices_;  // by pid
    std::vector<PageSeen> seen_;
    std::uint64_t round_ = 0;
    bool is_new_round_ = true;
    bool is_sharp_ = false;
};

// With glances by DAMON where there is one.
Result<std::unique_ptr<Tracker>> sample(Files& files, Result<std::unique_ptr<Tracker>>& accesses) {
    const auto events = try_memory_events(files);
    if (!events) return std::unexpected(events.error());
    if (!accesses) return make_sample_tracker(files, *events, nullptr);
    auto glancer = *std::exchange(accesses, fail(ErrorCode::kUnavailable, "it glances for samples"));
    return make_sample_tracker(files, *events, std::move(glancer));
}

// Ways that nobody has to consent to.
Result<std::unique_ptr<Tracker>> make_unasked_tracker(Files& files, const TieringConfig& config) {
    auto accesses = make_damon_tracker(files);
    // Samples tell of single pages and of reads: where there are any, nothing else is needed.
    auto sampled = sample(files, accesses);
    if (sampled || config.tracker == TrackerChoice::kSamples) return sampled;
    log::info("memory accesses are not sampled", {{"why", sampled.error()}});
    auto writes = make_soft_dirty_tracker(files);
    if (!writes && !accesses)
        return fail(ErrorCode::kUnavailable,
                    fmt::format("there is no way to see which pages are touched: {}; {}",
                                writes.error().message, accesses.error().message));
    if (!writes || !accesses)
        log::warning("pages are watched in one way alone",
                     {{"without", writes ? "damon" : "soft-dirty"},
                      {"why", writes ? accesses.error() : writes.error()}});
    if (!writes) return accesses;
    if (!accesses) return writes;
    return make_auto_tracker(*std::move(writes), *std::move(accesses), config.slowdown);
}

}  // namespace

std::unique_ptr<Tracker> make_auto_tracker(std::unique_ptr<Tracker> writes, std::unique_ptr<Tracker> accesses,
                                           double slowdown) {
    return std::make_unique<AutoTracker>(std::move(writes), std::move(accesses), slowdown);
}

Result<std::unique_ptr<Tracker>> make_tracker(Files& files, const TieringConfig& config) {
    if (config.tracker == TrackerChoice::kSoftDirty) return make_soft_dirty_tracker(files);
    if (config.tracker == TrackerChoice::kHintFaults) return make_hint_fault_tracker(files);
    if (config.tracker == TrackerChoice::kDamon) return make_damon_tracker(files);
    const bool is_auto = config.tracker == TrackerChoice::kAuto;
    auto consented = is_auto || config.tracker == TrackerChoice::kRwp
                         ? make_rwp_tracker(files)
                         : fail(ErrorCode::kUnavailable, "it is not wanted");
    if (config.tracker == TrackerChoice::kRwp) {
        if (!consented) return consented;
        return make_consent_tracker(*std::move(consented), nullptr, config.slowdown);
    }
    auto rest = make_unasked_tracker(files, config);
    if (!is_auto) return rest;
    if (!consented) {
        log::info("nobody can consent to be watched page by page", {{"why", consented.error()}});
        return rest;
    }
    if (rest) return make_consent_tracker(*std::move(consented), *std::move(rest), config.slowdown);
    log::warning("only who has consented is watched", {{"why", rest.error()}});
    return make_consent_tracker(*std::move(consented), nullptr, config.slowdown);
}

}  // namespace memtide::agent
