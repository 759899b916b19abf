#include "cli/commands/agent.h"

#include <cerrno>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands/refreshing_screen.h"
#include "cli/render/agent.h"
#include "cli/render/fields.h"
#include "cli/render/heat.h"
#include "cli/render/tiering.h"
#include "cli/render/top.h"
#include "common/daemon/exit_code.h"
#include "common/http/client.h"
#include "common/terminal/columns.h"

namespace memtide::cli {
namespace {

namespace json = boost::json;

// The manager is not who was asked. Whoever answered that it is busy is there.
Failure of_agent(Failure failure) {
    const bool nobody =
        failure.kind == ErrorCode::kUnavailable && member_of(failure.problem, "status").is_null();
    if (!nobody) return failure;
    return no_answer({failure.kind,
                      "no tiering agent answers on this machine; does memtide-tiering-agent run, with "
                      "`tiering` in its configuration? (--socket says where)"});
}

using Render = std::string (*)(const json::value&);

int show(const Answer<json::value>& answer, Output& output, Render render) {
    if (!answer) return output.failure(of_agent(answer.error()));
    if (output.json())
        output.value(*answer);
    else
        output.text(render(*answer));
    return daemon::kExitOk;
}

}  // namespace

int show_agent_status(const ManagerClient& agent, Output& output) {
    return show(agent.get("/v1/status", is_agent_status), output, render_agent_status);
}

int reload_agent(const ManagerClient& agent, Output& output) {
    const auto answer = agent.post("/v1/reload", json::object{}, "", is_reload);
    if (answer) return show(answer, output, render_reload);
    const json::value problem(answer.error().problem);
    const json::array& mistakes = items_of(problem, "mistakes");
    if (output.json() || mistakes.empty()) return output.failure(of_agent(answer.error()));
    for (const json::value& mistake : mistakes)
        if (mistake.is_string()) (void)output.complaint(std::string_view(mistake.get_string()));
    return output.complaint("the configuration of before stays in service");
}

int show_generations(const ManagerClient& agent, Output& output, bool begin) {
    constexpr const char* kPath = "/v1/generations";
    return show(
        begin ? agent.post(kPath, json::object{}, "", is_generations) : agent.get(kPath, is_generations),
        output, render_generations);
}

int show_working_sets(const ManagerClient& agent, Output& output) {
    return show(agent.get("/v1/wss", is_working_sets), output, render_working_sets);
}

int show_tiering_plan(const ManagerClient& agent, Output& output) {
    return show(agent.get("/v1/plan", is_tiering_plan), output, render_tiering_plan);
}

int explain_page(const ManagerClient& agent, Output& output, std::uint64_t pid, const std::string& address) {
    return show(agent.get(fmt::format("/v1/explain?pid={}&address={}", pid, http::percent_encode(address)),
                          is_explanation),
                output, render_explanation);
}

int show_heat(const ManagerClient& agent, Output& output, const HeatOptions& options) {
    std::string target = "/v1/heat";
    const auto add = [&](std::string_view name, const std::string& value) {
        target += fmt::format("{}{}={}", target.contains('?') ? '&' : '?', name, http::percent_encode(value));
    };
    if (options.pid) add("pid", std::to_string(*options.pid));
    if (!options.target.empty()) add("target", options.target);
    const auto answer = agent.get(target, is_heat);
    if (!answer) return output.failure(of_agent(answer.error()));
    if (!options.svg.empty()) {
        std::ofstream file(options.svg, std::ios::binary);
        file << draw_heat(*answer);
        if (!file.flush()) return output.failure(no_answer(fail_errno("write", options.svg, errno).error()));
        return daemon::kExitOk;
    }
    if (output.json()) {
        output.value(*answer);
        return daemon::kExitOk;
    }
    output.text(render_heat(*answer, {.columns = terminal_columns(STDOUT_FILENO)}));
    return daemon::kExitOk;
}

int show_top(const ManagerClient& agent, Output& output) {
    if (output.json()) return show_agent_status(agent, output);
    const auto columns = terminal_columns(STDOUT_FILENO);
    auto status = agent.get("/v1/status", is_agent_status);
    if (!columns || !status) return show(status, output, render_top);
    RefreshingScreen screen(output);
    TopView view;
    do {
        screen.show(view.page(*status, std::chrono::steady_clock::now()));
        if (!screen.wait_a_second()) return daemon::kExitOk;
        status = agent.get("/v1/status", is_agent_status);
    } while (status && output.is_open());
    screen.close();
    return show(status, output, render_top);
}

}  // namespace memtide::cli
