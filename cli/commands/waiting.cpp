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

// "; the agent is away since ..." behind what a composition waits for; "" when that is not so, or cannot be
// known.
std::string agent_note(const ManagerClient& manager, const json::value& composition) {
    if (!text_of(composition, "waiting_for").starts_with("the agent of ")) return "";
    const auto host =
        manager.get("/v1/hosts/" + http::percent_encode(text_of(composition, "host")), is_named);
    if (!host) return "";
    const json::value& agent = member_of(*host, "agent");
    if (!member_of(agent, "connected").is_bool() || flag_of(agent, "connected")) return "";
    const std::string since = text_of(agent, "away_since");
    return since == "-" ? "; the agent has not called since the manager started"
                        : "; the agent is away since " + since;
}

}  // namespace

std::string composition_target(std::string_view id) { return "/v1/compositions/" + http::percent_encode(id); }

bool has_ended(const json::value& composition) {
    const std::string state = text_of(composition, "state");
    return state == "Released" || state == "Failed";
}

json::value with_agent(const ManagerClient& manager, json::value composition) {
    if (const std::string away = agent_note(manager, composition); !away.empty())
        composition.as_object()["waiting_for"] = text_of(composition, "waiting_for") + away;
    return composition;
}

Answer<json::value> follow(const ManagerClient& manager, json::value composition, Goal goal,
                           std::chrono::seconds timeout) {
    const auto deadline = Clock::now() + timeout;
    const std::string id = text_of(composition, "id");
    const InterruptNotice notice(notice_of(id, goal));
    ProgressLine progress;
    bool hinted = !goal.hint_at_force;
    constexpr int kLooksAtTheAgent = 5;  // rounds between two: a request each
    std::string away;
    int round = 0;
    while (text_of(composition, "state") != goal.state && !has_ended(composition)) {
        if (!hinted && text_of(composition, "waiting_for").contains("has not reported yet")) {
            progress.note(fmt::format("the agent of {} has not reported yet; --force does not wait for it",
                                      text_of(composition, "host")));
            hinted = true;
        }
        if (round++ % kLooksAtTheAgent == 0) away = agent_note(manager, composition);
        const bool waits = !member_of(composition, "waiting_for").is_null();
        progress.show(fmt::format("{} {}{}", id, render_progress(composition), waits ? away : ""));
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
