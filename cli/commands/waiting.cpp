#include "cli/commands/waiting.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cli/commands/interrupt_notice.h"
#include "cli/render/compositions.h"
#include "cli/render/fields.h"
#include "common/http/client.h"
#include "common/terminal/progress_line.h"

namespace memtide::cli {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

// The manager holds each question for a second. One that does not must not be asked without a pause.
constexpr std::chrono::milliseconds kLeastPause{200};
constexpr std::chrono::milliseconds kPauseWhenAway{500};

std::string notice_of(const std::string& id, Goal goal) {
    if (goal.state == kReleased.state)
        return fmt::format(
            "the release of {} goes on without this command; 'memtide show {}' tells how far it is", id, id);
    return fmt::format(
        "{} goes on without this command; 'memtide show {}' tells how it is, 'memtide release {}' gives it "
        "back",
        id, id, id);
}

}  // namespace

std::string composition_target(std::string_view id) { return "/v1/compositions/" + http::percent_encode(id); }

bool has_ended(const json::value& composition) {
    const std::string state = text_of(composition, "state");
    return state == "Released" || state == "Failed";
}

Answer<json::value> follow(const ManagerClient& manager, json::value composition, Goal goal,
                           std::chrono::seconds timeout) {
    const auto deadline = Clock::now() + timeout;
    const std::string id = text_of(composition, "id");
    const InterruptNotice notice(notice_of(id, goal));
    ProgressLine progress;
    bool hinted = !goal.hint_at_force;
    while (text_of(composition, "state") != goal.state && !has_ended(composition)) {
        if (!hinted && text_of(composition, "waiting_for").contains("has not reported yet")) {
            progress.note(fmt::format("the agent of {} has not reported yet; --force does not wait for it",
                                      text_of(composition, "host")));
            hinted = true;
        }
        progress.show(fmt::format("{} {}", id, render_progress(composition)));
        const auto asked = Clock::now();
        if (asked >= deadline) break;
        auto now = manager.get(fmt::format("{}?wait={}&timeout=1s", composition_target(id), goal.state),
                               is_composition);
        if (now) {
            composition = *std::move(now);
        } else if (now.error().kind != ErrorCode::kUnavailable) {
            now.error().message.insert(0, id + ": ");
            return now;
        }
        const auto pause = now ? kLeastPause : kPauseWhenAway;
        const bool goes_on = text_of(composition, "state") != goal.state && !has_ended(composition);
        if (goes_on) std::this_thread::sleep_until(std::min(asked + pause, deadline));
    }
    return composition;
}

}  // namespace memtide::cli
