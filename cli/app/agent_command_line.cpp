// `memtide agent ...`: the commands that ask the tiering agent of this machine.
#include <fmt/format.h>

#include "cli/app/command_line.h"
#include "cli/app/usage.h"
#include "cli/commands/run.h"
#include "common/usage/explain.h"

namespace memtide::cli {
namespace {

constexpr std::uint64_t kMostPid = 1 << 22;  // PID_MAX_LIMIT, include/linux/threads.h

// As /proc/PID/maps writes it, with 0x or without.
CLI::Validator address() {
    const auto check = [](const std::string& text) -> std::string {
        const bool has_prefix = text.starts_with("0x") || text.starts_with("0X");
        const std::string digits = text.substr(has_prefix ? 2 : 0);
        constexpr std::size_t kMostDigits = 16;
        if (!digits.empty() && digits.size() <= kMostDigits &&
            digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos)
            return {};
        return fmt::format("\"{}\" is not a hexadecimal address, such as 0x7f0012345000", text);
    };
    return {check, ""};
}

}  // namespace

CLI::App* CommandLine::add_agent_command(CLI::App* agent, const char* name, const char* text,
                                         const char* more, AgentCommand command) {
    auto* const added = agent->add_subcommand(name, text);
    added->footer(more);
    added
        ->add_option("--socket", agent_socket_,
                     "Where it answers: agent.sock in the `state` folder of its configuration")
        ->type_name("PATH")
        ->check(something())
        ->capture_default_str();
    added->callback([this, command = std::move(command)] {
        chosen_ = [this, command](const auto&, auto& output) {
            return command(ManagerClient("unix:" + agent_socket_), output);
        };
    });
    return added;
}

void CommandLine::add_agent() {
    auto* const agent =
        add("agent", "What the tiering agent of this machine does, and why",
            "  memtide agent status\n"
            "  memtide agent wss                        who uses how much of their memory\n"
            "  memtide agent plan                       what would be moved now\n"
            "  memtide agent explain 4711 0x7f0012345000\n"
            "  memtide agent run -- redis-server        a program that lets itself be watched\n"
            "  memtide --json agent status | jq .hit\n");
    agent->require_subcommand(1);
    add_agent_command(agent, "status", "Tiers, targets, and what was moved", "", show_agent_status);
    add_agent_command(agent, "top", "The same, live: each second anew until q or ^C",
                      "PRESSURE is the share of the last 10 s in which some task of the target's cgroups "
                      "waited for memory (PSI).\nWhere standard output is no terminal, one page.",
                      show_top);
    add_agent_command(agent, "wss", "Working sets: how much was touched within which time",
                      "Only of memory that may be moved: all else is not looked at. What nobody has watched "
                      "for long enough is \"-\".\nCOLD is what was not touched within the longest time that "
                      "is known.",
                      show_working_sets);
    auto* const generations = add_agent_command(
        agent, "generations",
        "How long ago pages were accessed as the kernel knows it (MGLRU), by cgroup and node",
        "AGE is how long ago a generation began: what is in it was not seen accessed since the next one did. "
        "Counts\n"
        "file pages, too. The kernel begins generations when it reclaims; --begin does now:\n\n"
        "  memtide agent generations --begin; sleep 60; memtide agent generations --begin\n",
        [this](const ManagerClient& client, Output& output) {
            return show_generations(client, output, begin_generation_);
        });
    generations->add_flag("--begin", begin_generation_,
                          "Begin a new generation first: the kernel looks at all accessed bits once");
    add_agent_command(agent, "plan", "What would be moved now, and what it would gain; moves nothing",
                      "Also with `mode: observe`, which is what it is best for.", show_tiering_plan);
    add_agent_explain(agent);
    add_agent_heat(agent);
    add_agent_run(agent);
    add_agent_command(agent, "reload", "Have it read its configuration again, as SIGHUP does",
                      "What is wrong in it is told, and the configuration of before stays in service.",
                      reload_agent);
}

void CommandLine::add_agent_run(CLI::App* agent) {
    auto* const run =
        agent->add_subcommand("run", "Run a program that lets its memory be watched page by page");
    run->footer(
        "  memtide agent run -- redis-server /etc/redis.conf\n"
        "From Linux 7.3 on the agent then sees which pages it and what it starts read and write. On older "
        "kernels\n"
        "it is watched as any other program is. Not for programs that use userfaultfd(2) themselves.");
    auto command = std::make_shared<std::vector<std::string>>();
    run->add_option("COMMAND", *command, "The program and its arguments, behind --")
        ->required()
        ->expected(-1);
    run->add_option("--socket", agent_socket_, "Where the agent would answer, to say so when none does")
        ->type_name("PATH")
        ->check(something())
        ->capture_default_str();
    run->callback([this, command] {
        chosen_ = [this, command](const auto&, auto& output) {
            return run_with_consent(*command, agent_socket_, output);
        };
    });
}

void CommandLine::add_agent_explain(CLI::App* agent) {
    auto* const explain =
        add_agent_command(agent, "explain", "Why a page is where it is, and what becomes of it",
                          "Examples:\n"
                          "  memtide agent explain 4711 0x7f0012345000     /proc/4711/maps has addresses\n"
                          "  memtide agent explain 4711 7f0012345000 --json\n",
                          [this](const ManagerClient& client, Output& output) {
                              return explain_page(client, output, pid_, address_);
                          });
    explain->add_option("PID", pid_, "A process")
        ->required()
        ->type_name("")
        ->check(whole_number(1, kMostPid));
    explain->add_option("ADDRESS", address_, "An address in it, hexadecimal")
        ->required()
        ->type_name("")
        ->check(address());
}

void CommandLine::add_agent_heat(CLI::App* agent) {
    auto* const heat = add_agent_command(
        agent, "heat", "A picture of what is touched when: addresses downwards, time to the right",
        "Without --pid and --target: the processes that have most.\n\n"
        "Examples:\n"
        "  memtide agent heat --pid 4711\n"
        "  memtide agent heat --target database --svg heat.svg\n",
        [this](const ManagerClient& client, Output& output) {
            if (output.json() && !heat_.svg.empty())
                return output.wrong_usage("--svg and --json are two answers; ask for one", "agent heat");
            return show_heat(client, output, heat_);
        });
    auto* const pid = heat->add_option("--pid", heat_.pid, "Of this process")
                          ->type_name("PID")
                          ->check(whole_number(1, kMostPid));
    heat->add_option("--target", heat_.target, "Of the processes of this target")
        ->type_name("NAME")
        ->excludes(pid)
        ->check(something());
    heat->add_option("--svg", heat_.svg, "Draw it into this file, in SVG")
        ->type_name("FILE")
        ->check(something());
}

}  // namespace memtide::cli
