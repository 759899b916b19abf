#include "tiering-agent/hotplug/reconciler.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/log/log.h"

namespace memtide::agent {
namespace {

using std::chrono::milliseconds;

// Something outside works against the agent when a region takes more actions than this in a window.
constexpr int kActionsPerWindow = 60;
constexpr std::chrono::seconds kWindow{10};
constexpr milliseconds kPause{1'000};

bool waits_for_pages(ActionKind kind) {
    return kind == ActionKind::kOfflineBlocks || kind == ActionKind::kRezoneBlocks;
}

void log_result(const Action& action, const ActionResult& result) {
    if (result.error)
        log::warning("action failed", {{"action", to_string(action.kind)},
                                       {"composition", action.id.composition},
                                       {"memdevs", fmt::format("{}", fmt::join(action.memdevs, ","))},
                                       {"region", action.region},
                                       {"code", result.error->code},
                                       {"reason", result.error->detail}});
    else
        log::info("action done", {{"action", to_string(action.kind)},
                                  {"composition", action.id.composition},
                                  {"memdevs", fmt::format("{}", fmt::join(action.memdevs, ","))},
                                  {"region", action.region},
                                  {"blocks", block_names(action.blocks)}});
}

}  // namespace

Reconciler::Reconciler(Host& host, RetryTimes retry, std::function<bool()> cancelled,
                       std::function<void(const Observed&)> on_observed)
    : host_(host), retry_(retry), cancelled_(std::move(cancelled)), on_observed_(std::move(on_observed)) {}

Result<Reconciler::Pass> Reconciler::pass(const Desired& desired, WallTime now,
                                          Clock::time_point steady_now) {
    std::vector<SerialNumber> serials;
    for (const DesiredRegion& region : desired.regions)
        serials.insert(serials.end(), region.serials.begin(), region.serials.end());
    auto seen = host_.look(serials);
    if (!seen) return std::unexpected(std::move(seen.error()));
    if (*seen != last_seen_) {
        // What failed before may work now. Not so for pages that are held: trying shows nothing new there.
        for (auto& [id, attempt] : attempts_)
            if (const auto note = notes_.find(id);
                note == notes_.end() || !waits_for_pages(note->second.kind))
                attempt.next_try = {};
        last_seen_ = *seen;
    }

    Plan plan = make_plan(desired, *seen, notes_, now);
    forget_settled(plan);
    Observed observed{.revision_seen = desired.revision,
                      .memdevs = std::move(seen->memdevs),
                      .warnings = std::move(plan.warnings)};
    for (const RegionPlan& region : plan.regions) observed.regions.push_back(region.observed);
    on_observed_(observed);

    Pass pass;
    for (const RegionPlan& region : plan.regions)
        if (region.next && !cancelled_()) try_action(*region.next, now, steady_now, pass);
    for (const Action& cleanup : plan.cleanups)
        if (!cancelled_()) try_action(cleanup, now, steady_now, pass);
    return pass;
}

bool Reconciler::try_action(const Action& action, WallTime now, Clock::time_point steady_now, Pass& pass) {
    Attempt& attempt = attempts_[action.id];
    if (attempt.done == action) {
        attempt.done.reset();
        note_result(action,
                    {.error = Finding{"no-effect", fmt::format("{} reported success but changed nothing",
                                                               to_string(action.kind))}},
                    now, steady_now);
    }
    if (steady_now - attempt.window_start > kWindow) {
        attempt.window_start = steady_now;
        attempt.actions_in_window = 0;
    }
    if (++attempt.actions_in_window > kActionsPerWindow) {
        attempt.next_try = std::max(attempt.next_try, steady_now + kPause);
        attempt.window_start = {};
    }
    if (attempt.next_try > steady_now) {
        pass.retry_at = pass.retry_at ? std::min(*pass.retry_at, attempt.next_try) : attempt.next_try;
        return false;
    }
    ActionResult result = host_.perform(action);
    log_result(action, result);
    // Offlining takes time: the pause starts now, not when the pass began.
    note_result(action, std::move(result), now, std::max(steady_now, Clock::now()));
    pass.acted = true;
    return true;
}

void Reconciler::note_result(const Action& action, ActionResult result, WallTime now,
                             Clock::time_point steady_now) {
    Attempt& attempt = attempts_[action.id];
    if (!result.error) {
        attempt.done = action;
        attempt.next_try = {};
        // The note stays until another kind of action is next, see make_plan: an unfinished job is no news.
        return;
    }
    attempt.done.reset();
    Note& note = notes_[action.id];
    if (note.kind != action.kind) note = Note{.kind = action.kind, .failures = 0, .error = {}};
    ++note.failures;
    note.error = std::move(*result.error);
    if (result.holders) note.holders = std::move(*result.holders);

    const bool draining = action.kind == ActionKind::kOfflineBlocks &&
                          !(action.deadline && now >= *action.deadline) && !is_leftover(action.id);
    const milliseconds longest = draining ? retry_.drain_max : retry_.max;
    const int doublings = std::min(note.failures - 1, 16);
    attempt.next_try = steady_now + std::min(longest, retry_.min * (1 << doublings));
}

// Forgets notes of what is no longer planned, so that the next trouble starts afresh.
void Reconciler::forget_settled(const Plan& plan) {
    std::map<RegionId, ActionKind> planned;
    for (const RegionPlan& region : plan.regions)
        if (region.next) planned[region.next->id] = region.next->kind;
    for (const Action& cleanup : plan.cleanups) planned[cleanup.id] = cleanup.kind;
    std::erase_if(notes_, [&](const auto& entry) {
        const auto it = planned.find(entry.first);
        return it == planned.end() || it->second != entry.second.kind;
    });
    std::erase_if(attempts_, [&](const auto& entry) { return !planned.contains(entry.first); });
}

}  // namespace memtide::agent
