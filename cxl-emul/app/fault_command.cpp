#include "cxl-emul/app/fault_command.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include "common/daemon/exit_code.h"
#include "cxl-emul/app/fault_client.h"
#include "cxl-emul/faults/fault_table.h"
#include "cxl-emul/faults/read_fault.h"
#include "cxl-emul/faults/scenario.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {
namespace {

namespace json = boost::json;

struct FaultOptions {
    std::string control;
    std::string kind;
    std::vector<std::string> settings;
    std::string file;
    std::string topology;
    double speed = 1;
    std::vector<std::uint64_t> ids;
    bool as_json = false;
};

int complain(const std::string& message, int code) {
    std::cerr << "memtide-cxl-emul: " << message << '\n';
    return code;
}

int complain(const Error& error) {
    return complain(error.message,
                    error.code == ErrorCode::kInvalidArgument ? daemon::kExitUsage : daemon::kExitFailure);
}

// "KIND port=3 for=5s" as the lines of a map.
Result<std::string> fault_from(const FaultOptions& options) {
    std::string text = fmt::format("fault: {}\n", options.kind);
    for (const std::string& setting : options.settings) {
        const auto equals = setting.find('=');
        if (equals == std::string::npos || equals == 0 || setting.find('\n') != std::string::npos)
            return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is no KEY=VALUE", setting));
        text += fmt::format("{}: {}\n", setting.substr(0, equals), setting.substr(equals + 1));
    }
    if (auto read = parse_fault(text, "fault", nullptr); !read) return std::unexpected(read.error());
    return text;
}

int run_inject(const FaultOptions& options) {
    auto text = fault_from(options);
    if (!text) return complain(text.error());
    const auto answer = call_control(options.control, "POST", "/v1/faults", *std::move(text));
    if (!answer) return complain(answer.error());
    const json::value body = json::parse(*answer);
    std::cout << fmt::format("fault {}\n", body.at("id").to_number<std::uint64_t>());
    return daemon::kExitOk;
}

int run_play(const FaultOptions& options) {
    std::ifstream file(options.file);
    if (!file) return complain(options.file + ": cannot be read", daemon::kExitUsage);
    // Places of mistakes have the file's name when they are found here.
    if (auto read = load_scenario(options.file, nullptr); !read)
        return complain(read.error().message, daemon::kExitUsage);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto answer = call_control(options.control, "POST",
                                     fmt::format("/v1/scenarios?speed={}", options.speed), std::move(text));
    if (!answer) return complain(answer.error());
    const json::value body = json::parse(*answer);
    std::cout << fmt::format("{} faults\n", body.at("ids").as_array().size());
    return daemon::kExitOk;
}

int run_list(const FaultOptions& options) {
    const auto answer = call_control(options.control, "GET", "/v1/faults");
    if (!answer) return complain(answer.error());
    if (options.as_json) {
        std::cout << *answer << '\n';
        return daemon::kExitOk;
    }
    const json::value body = json::parse(*answer);
    for (const json::value& one : body.at("faults").as_array())
        std::cout << fmt::format("{:>4}  {:<7}  {:>6} hits  {}\n", one.at("id").to_number<std::uint64_t>(),
                                 std::string(one.at("state").as_string()),
                                 one.at("hits").to_number<std::uint64_t>(),
                                 std::string(one.at("fault").as_string()));
    return daemon::kExitOk;
}

int run_clear(const FaultOptions& options) {
    std::vector<std::string> targets;
    for (const std::uint64_t id : options.ids) targets.push_back(fmt::format("/v1/faults/{}", id));
    if (targets.empty()) targets.emplace_back("/v1/faults");
    int code = daemon::kExitOk;
    for (const std::string& target : targets)
        if (const auto answer = call_control(options.control, "DELETE", target); !answer)
            code = complain(answer.error());
    return code;
}

int run_check(const FaultOptions& options) {
    std::optional<Topology> topology;
    if (!options.topology.empty()) {
        auto loaded = load_topology(options.topology);
        if (!loaded) {
            std::cerr << loaded.error().message << '\n';
            return daemon::kExitUsage;
        }
        topology = *std::move(loaded);
    }
    const auto scenario = load_scenario(options.file, topology ? &*topology : nullptr);
    if (!scenario) {
        std::cerr << scenario.error().message << '\n';
        return daemon::kExitUsage;
    }
    std::cout << fmt::format("{}: ok, {} faults\n", options.file, scenario->faults.size());
    return daemon::kExitOk;
}

// What it is, of what, and what it takes.
int run_kinds(const FaultOptions&) {
    for (const FaultRow& row : kFaultTable) {
        const std::string_view common =
            row.layer == FaultLayer::kEquipment ? "for" : "for times probability skip seed";
        std::cout << fmt::format("{}: {}\n    of {}; takes {} {}\n", row.name, row.summary, row.targets,
                                 common, row.parameters);
    }
    std::cout << "Agents and hosts go wrong as well: `memtide-cxl-emul hosts --help` (--fault), "
                 "docs/emulated-hosts.md.\n";
    return daemon::kExitOk;
}

CLI::App* add_action(CLI::App& fault, const char* name, const char* text,
                     const std::shared_ptr<FaultOptions>& options, int (*run)(const FaultOptions&),
                     std::function<int()>& chosen) {
    CLI::App* action = fault.add_subcommand(name, text);
    action->callback([options, run, &chosen] { chosen = [options, run] { return run(*options); }; });
    return action;
}

void add_control(CLI::App* action, const std::shared_ptr<FaultOptions>& options) {
    action
        ->add_option("--control", options->control,
                     "Of `switch` or `hosts --control`, 127.0.0.1:PORT or unix:/PATH; a rack's is "
                     "unix:RUN_FOLDER/faults.sock")
        ->required()
        ->envname("MEMTIDE_EMUL_CONTROL");
}

}  // namespace

void add_fault_command(CLI::App& app, std::function<int()>& chosen) {
    auto options = std::make_shared<FaultOptions>();
    CLI::App* fault = app.add_subcommand("fault", "Make something go wrong in emulated hardware that runs");
    fault->require_subcommand(1);

    CLI::App* inject = add_action(*fault, "inject", "Begin one fault", options, run_inject, chosen);
    add_control(inject, options);
    inject->add_option("KIND", options->kind, "What goes wrong: `fault kinds` lists them")->required();
    inject->add_option("SETTING", options->settings, "Of what, how often, how, as KEY=VALUE: port=3 for=5s");

    CLI::App* play =
        add_action(*fault, "play", "Begin a scenario; its times count from now", options, run_play, chosen);
    add_control(play, options);
    play->add_option("FILE", options->file, "Scenario file (YAML)")->required();
    play->add_option("--speed", options->speed, "How many times faster than the file says")
        ->check(CLI::Range(0.001, 1000.0))
        ->capture_default_str();

    CLI::App* list = add_action(*fault, "list", "Show what waits, what is active and what is over", options,
                                run_list, chosen);
    add_control(list, options);
    list->add_flag("--json", options->as_json, "For programs");

    CLI::App* clear = add_action(*fault, "clear", "End faults: these, or all", options, run_clear, chosen);
    add_control(clear, options);
    clear->add_option("ID", options->ids, "Numbers that `fault list` shows");

    CLI::App* check =
        add_action(*fault, "check", "Explain what is wrong with a scenario file", options, run_check, chosen);
    check->add_option("FILE", options->file, "Scenario file (YAML)")->required();
    check->add_option("--topology", options->topology, "Also whether its faults can happen there");

    add_action(*fault, "kinds", "List all faults and what they take", options, run_kinds, chosen);
    fault->footer(
        "Examples:\n"
        "  fault inject --control unix:/tmp/emul.sock link-down port=2 for=5s\n"
        "  fault inject --control unix:/tmp/emul.sock error opcode=bind-vppb code=busy times=3\n"
        "  fault inject --control unix:/tmp/emul.sock corrupt probability=0.01 seed=7\n"
        "  fault play --control unix:/tmp/emul.sock config/scenarios/links.yaml\n"
        "docs/faults.md tells more.");
}

}  // namespace memtide::emul
