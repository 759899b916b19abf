#include "cxl-emul/rack/commands.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "common/daemon/exit_code.h"
#include "common/usage/explain.h"
#include "cxl-emul/rack/control_client.h"
#include "cxl-emul/rack/down.h"
#include "cxl-emul/rack/guest_helper.h"
#include "cxl-emul/rack/list.h"
#include "cxl-emul/rack/messages.h"
#include "cxl-emul/rack/relay.h"
#include "cxl-emul/rack/report.h"
#include "cxl-emul/rack/run_folder.h"
#include "cxl-emul/rack/status_text.h"
#include "cxl-emul/rack/terminal.h"
#include "cxl-emul/rack/up.h"
#include "cxl-emul/switch/switch.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {
namespace json = boost::json;

namespace {

constexpr const char* kHostText = "Name of a host of the topology: host0";

// What every subcommand of `rack` takes.
struct Where {
    std::string topology;
    std::string run_folder;
};

// The run folder of a rack that is (to be) up.
Result<std::string> folder_of(const Where& where) {
    if (!where.run_folder.empty()) return std::filesystem::absolute(where.run_folder).string();
    auto topology = load_topology(where.topology);
    if (!topology) return std::unexpected(topology.error());
    return RunFolder::default_path(topology->name);
}

Result<ControlClient> connect(const Where& where) {
    auto folder = folder_of(where);
    if (!folder) return std::unexpected(folder.error());
    return ControlClient::connect(*folder);
}

Result<json::object> ask(const Where& where, const json::object& request,
                         const ControlClient::Progress& progress = {}) {
    auto client = connect(where);
    if (!client) return std::unexpected(client.error());
    return client->ask(request, progress);
}

int take_down(const Where& where, bool wipe) {
    auto folder = folder_of(where);
    return folder ? run_down(*folder, where.topology, wipe) : report(folder.error());
}

struct StatusOptions {
    bool as_json = false;
    bool verbose = false;
};

int run_status(const Where& where, const StatusOptions& options) {
    auto status = ask(where, {{"op", "status"}});
    if (!status) return report(status.error());
    std::cout << (options.as_json ? json::serialize(*status) + "\n" : status_text(*status, options.verbose));
    return daemon::kExitOk;
}

struct ExecOptions {
    std::string host;
    std::vector<std::string> command;
    std::string folder;
    std::vector<std::string> environment;
    bool no_input = false;
};

int run_exec(const Where& where, const ExecOptions& options) {
    auto client = connect(where);
    if (!client) {
        report(client.error());
        return kExecFailed;
    }
    json::object request;
    request["op"] = "exec";
    request["host"] = options.host;
    json::array argv;
    for (const auto& word : options.command) argv.emplace_back(word);
    request["argv"] = std::move(argv);
    std::error_code ignored;
    request["cwd"] =
        options.folder.empty() ? std::filesystem::current_path(ignored).string() : options.folder;
    json::object environment;
    if (const char* term = std::getenv("TERM")) environment["TERM"] = term;
    for (const auto& variable : options.environment) {
        const auto equals = variable.find('=');
        if (equals == std::string::npos) {
            report({ErrorCode::kInvalidArgument, fmt::format("--env {}: no NAME=VALUE", variable)});
            return daemon::kExitUsage;
        }
        environment[variable.substr(0, equals)] = variable.substr(equals + 1);
    }
    request["env"] = std::move(environment);
    return run_in_guest(std::move(*client), request, !options.no_input);
}

int run_console(const Where& where, const std::string& host) {
    auto client = connect(where);
    if (!client) return report(client.error());
    auto left = attach_console(std::move(*client), host);
    return left ? daemon::kExitOk : report(left.error());
}

struct BindOptions {
    std::string host;
    unsigned vppb = 0;
    std::string device;
    std::string switch_name;
    bool surprise = false;
    bool managed = false;
};

int run_bind(const Where& where, const BindOptions& options) {
    auto bound = ask(
        where, {{"op", "bind"}, {"host", options.host}, {"vppb", options.vppb}, {"device", options.device}});
    if (!bound) return report(bound.error());
    std::cout << fmt::format("{} is at vPPB {} of {}, serial {}, {}\n", options.device, options.vppb,
                             options.host, text_of(*bound, "serial"),
                             format_bytes(Bytes{number_of(*bound, "size")}));
    return daemon::kExitOk;
}

int run_unbind(const Where& where, const BindOptions& options) {
    const char* how = options.surprise ? "surprise" : options.managed ? "managed" : "wait";
    const json::object request{{"op", "unbind"},
                               {"host", options.host},
                               {"vppb", options.vppb},
                               {"switch", options.switch_name},
                               {"option", how}};
    auto done =
        ask(where, request, [](const json::object& told) { note("waiting: " + text_of(told, "waiting")); });
    if (!done) return report(done.error());
    std::cout << fmt::format("vPPB {} of {} is unbound\n", options.vppb, options.host);
    return daemon::kExitOk;
}

// A subcommand of `rack` with what all of them take.
CLI::App* add_action(CLI::App& rack, const char* name, const char* text,
                     const std::shared_ptr<Where>& where) {
    auto* action = rack.add_subcommand(name, text);
    action->add_option("TOPOLOGY", where->topology, "Topology file (YAML)")->required();
    action->add_option("--run-dir", where->run_folder,
                       "Folder for control socket and logs (default: /run/memtide/NAME for root, else\n"
                       "$XDG_RUNTIME_DIR/memtide/NAME, or /tmp/memtide-UID/NAME without that variable;\n"
                       "NAME is the topology's)");
    return action;
}

void add_up(CLI::App& rack, std::function<int()>& chosen) {
    auto where = std::make_shared<Where>();
    auto options = std::make_shared<UpOptions>();
    auto* up =
        add_action(rack, "up", "Start the switches and boot the hosts, and wait until they are ready", where);
    up->add_option(
        "--manager", options->manager,
        "Loopback address of a fabric manager that guests reach as http://10.0.2.101:8080, and nothing else");
    up->add_flag("--agent", options->agent, "Run memtide-tiering-agent in each guest (needs --manager)");
    up->add_option("--agent-certs", options->agent_certs,
                   "Folder that `memtide-fabric-manager certs init` made: agents speak TLS with its "
                   "certificates (issue the manager's with --server 10.0.2.101, too)")
        ->check(CLI::ExistingDirectory);
    up->add_flag("--no-kvm", options->no_kvm, "Do not try KVM");
    up->add_option("--append", options->kernel_arguments,
                   "More arguments for the guests' kernel command line");
    up->add_option("--while", options->while_process,
                   "Take the rack down when the process of this number ends, for scripts: --while $$")
        ->check(CLI::PositiveNumber);
    up->add_option("--timeout", options->timeout_seconds, "Seconds to wait for the hosts")
        ->capture_default_str();
    add_scenario_options(*up, options->scenario, "when all hosts are ready");
    up->add_option("--pcap", options->pcap, kPcapHelp)->type_name("FILE")->check(something());
    up->add_flag("--check-config", options->check_config, "Only check the file, and start nothing");
    up->footer(
        "Examples:\n"
        "  rack up config/topologies/one-switch-one-mld.yaml\n"
        "  rack up config/topologies/one-switch-one-mld.yaml --manager 127.0.0.1:8080 --agent\n"
        "  rack up config/topologies/direct-one-host.yaml --append 'cxl_core.dyndbg=+p'\n"
        "  rack up my-rack.yaml --check-config\n"
        "Then: rack exec, bind, unbind, console, status; rack down stops it. docs/rack.md tells more.");
    up->callback([where, options, &chosen] {
        chosen = [where, options] {
            options->topology = where->topology;
            options->run_folder = where->run_folder;
            return run_up(*options);
        };
    });
}

void add_exec(CLI::App& rack, std::function<int()>& chosen) {
    auto where = std::make_shared<Where>();
    auto options = std::make_shared<ExecOptions>();
    auto* exec =
        add_action(rack, "exec", "Run a command in a host; its streams and its exit code are ours", where);
    exec->add_option("HOST", options->host, kHostText)->required();
    exec->add_option("COMMAND", options->command, "Command and arguments, after --")->required();
    exec->add_option("-C,--directory", options->folder, "Folder to run in (default: the current one)");
    exec->add_option("-e,--env", options->environment, "NAME=VALUE for the command")->allow_extra_args(false);
    exec->add_flag("-n,--no-input", options->no_input, "Do not read standard input");
    exec->footer(
        "Exit code: the command's, 128+N when signal N ended it, 127 and 126 when the guest cannot run "
        "it,\n125 when "
        "it could not be asked.");
    exec->callback(
        [where, options, &chosen] { chosen = [where, options] { return run_exec(*where, *options); }; });
}

void add_slot(CLI::App& action, BindOptions& options) {
    action.add_option("HOST", options.host, kHostText)->required();
    action
        .add_option("VPPB", options.vppb,
                    "Slot of the host, from 0: a virtual PCI-to-PCI bridge of its virtual switch")
        ->required();
}

void add_bindings(CLI::App& rack, std::function<int()>& chosen) {
    auto where = std::make_shared<Where>();
    auto options = std::make_shared<BindOptions>();
    auto* bind = add_action(rack, "bind", "Plug a device into a vPPB of a host, by FM API", where);
    add_slot(*bind, *options);
    bind->add_option("DEVICE", options->device, "Name of an SLD, or of an MLD with the LD: mld0:1")
        ->required();
    bind->callback(
        [where, options, &chosen] { chosen = [where, options] { return run_bind(*where, *options); }; });

    auto* unbind = add_action(rack, "unbind", "Take out what is in a vPPB of a host, by FM API", where);
    add_slot(*unbind, *options);
    unbind->add_option("--switch", options->switch_name, "When the host is attached to several");
    auto* managed =
        unbind->add_flag("--managed", options->managed,
                         "Press the slot's attention button instead of powering the slot off in the guest");
    unbind->add_flag("--surprise", options->surprise, "At once, whatever the guest does with it")
        ->excludes(managed);
    unbind->callback(
        [where, options, &chosen] { chosen = [where, options] { return run_unbind(*where, *options); }; });
}

void add_looks(CLI::App& rack, std::function<int()>& chosen) {
    auto where = std::make_shared<Where>();
    auto options = std::make_shared<StatusOptions>();
    auto* status = add_action(rack, "status", "Show hosts, switches and what is bound where", where);
    status->add_flag("--json", options->as_json, "For programs");
    status->add_flag("-v,--verbose", options->verbose, "Also the topology file, and why KVM is used or not");
    status->callback(
        [where, options, &chosen] { chosen = [where, options] { return run_status(*where, *options); }; });

    auto as_json = std::make_shared<bool>(false);
    auto* list = rack.add_subcommand(
        "list", "Show the racks of this user that run, but for those started with --run-dir");
    list->add_flag("--json", *as_json, "For programs: the status of each");
    list->callback([as_json, &chosen] { chosen = [as_json] { return run_list(*as_json); }; });
}

}  // namespace

void add_rack_commands(CLI::App& app, std::function<int()>& chosen) {
    auto* rack =
        app.add_subcommand("rack", "Run a whole rack: the switches and QEMU hosts of a topology file");
    rack->require_subcommand(1);
    add_up(*rack, chosen);

    add_looks(*rack, chosen);

    auto where = std::make_shared<Where>();
    auto wipe = std::make_shared<bool>(false);
    auto* down = add_action(*rack, "down", "Shut the hosts down and stop the switches", where);
    down->add_flag("--wipe", *wipe, "Then remove the files with what the topology's devices hold");
    down->callback([where, wipe, &chosen] { chosen = [where, wipe] { return take_down(*where, *wipe); }; });

    add_exec(*rack, chosen);

    auto host = std::make_shared<std::string>();
    auto* console = add_action(*rack, "console", "Attach to a host's serial console; Ctrl-] leaves", where);
    console->add_option("HOST", *host, kHostText)->required();
    console->callback(
        [where, host, &chosen] { chosen = [where, host] { return run_console(*where, *host); }; });

    add_bindings(*rack, chosen);

    // What QEMU and the guests run; an empty group hides them from the help.
    auto address = std::make_shared<std::string>();
    auto* relay = app.add_subcommand("relay", "Carry one connection of a guest to the manager")->group("");
    relay->add_option("ADDRESS", *address)->required();
    relay->callback([address, &chosen] { chosen = [address] { return run_relay(*address); }; });
    auto* guest = app.add_subcommand("guest", "Serve the rack from inside a guest")->group("");
    guest->callback([&chosen] { chosen = [] { return run_guest_helper(); }; });
}

}  // namespace memtide::emul
