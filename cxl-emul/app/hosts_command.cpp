#include "cxl-emul/app/hosts_command.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/bytes.h"
#include "common/daemon/daemon.h"
#include "common/fmapi/capture/session_capture.h"
#include "common/http/server.h"
#include "common/log/log.h"
#include "common/usage/explain.h"
#include "cxl-emul/faults/fault_board.h"
#include "cxl-emul/faults/scenario_options.h"
#include "cxl-emul/hosts/control.h"
#include "cxl-emul/hosts/fleet.h"
#include "cxl-emul/hosts/fleet_equipment.h"
#include "cxl-emul/hosts/manager_config.h"
#include "cxl-emul/switch/switch.h"

namespace memtide::emul {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

// As typed; texts that have a syntax of their own are read by read().
struct HostsOptions {
    FleetOptions fleet;
    std::string kind = "mld";
    std::string ld_size = "256MiB";
    std::string online_delay = "0ms";
    std::string offline_delay = "0ms";
    std::string report_delay = "0ms";
    std::string bind_time = "0ms";
    std::string unbind_time = "0ms";
    std::string erase_time = "0ms";
    std::vector<std::string> faults;
    std::string write_config;
    std::string state;  // empty: named after the topology
    std::string control;
    ScenarioOptions scenario;
    std::string pcap;
    bool verbose = false;
};

Error about(const char* option, Error error) { return std::move(error).with_context(option); }

Result<> read_delay(const char* option, const std::string& text, Delay& into) {
    const auto delay = parse_delay(text);
    if (!delay) return std::unexpected(about(option, delay.error()));
    into = *delay;
    return {};
}

// The switches count in milliseconds.
Result<> read_time(const char* option, const std::string& text, milliseconds& into) {
    const auto time = parse_duration(text);
    if (!time) return std::unexpected(about(option, time.error()));
    into = std::chrono::duration_cast<milliseconds>(*time);
    return {};
}

// "refuses-offline=0.05": that share of the hosts.
Result<std::pair<HostFault, double>> read_fault(const std::string& text) {
    const auto equals = text.find('=');
    const auto fault = parse_host_fault(text.substr(0, equals));
    if (!fault)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("--fault: \"{}\" is none of {}", text.substr(0, equals),
                                fmt::join(host_fault_names(), ", ")));
    double share = 1;
    if (equals != std::string::npos) {
        const char* const begin = text.data() + equals + 1;
        const char* const end = text.data() + text.size();
        const auto [stop, status] = std::from_chars(begin, end, share);
        if (begin == end || status != std::errc{} || stop != end || !(share >= 0 && share <= 1))
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("--fault: \"{}\" is not a share of the hosts from 0 to 1",
                                    text.substr(equals + 1)));
    }
    return std::pair{*fault, share};
}

Result<> check_certificates(const HostsOptions& typed) {
    const auto& [ca, folder] = typed.fleet.certificates;
    const std::string& manager = typed.fleet.manager;
    const bool secure = manager.starts_with("https://");
    if (!secure && (!ca.empty() || !folder.empty()))
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} is for a manager at https://, and not at {}",
                                folder.empty() ? "--ca" : "--agent-certs", manager));
    if (secure && folder.empty() && !typed.write_config.empty())
        return fail(
            ErrorCode::kInvalidArgument,
            "--write-config for a manager at https:// needs --agent-certs DIR, where its certificate is");
    return {};
}

Result<FleetOptions> read(const HostsOptions& typed) {
    FleetOptions options = typed.fleet;
    if (options.count == 0 && options.topology.empty())
        return fail(ErrorCode::kInvalidArgument,
                    "--count says how many hosts there are, or --topology in which file they are");
    options.kind = typed.kind == "sld"   ? DeviceKind::kSld
                   : typed.kind == "dcd" ? DeviceKind::kDcd
                                         : DeviceKind::kMld;
    const auto size = parse_bytes(typed.ld_size);
    if (!size) return std::unexpected(about("--ld-size", size.error()));
    options.ld_size = *size;
    for (const Result<>& done : {read_delay("--online-delay", typed.online_delay, options.delays.online),
                                 read_delay("--offline-delay", typed.offline_delay, options.delays.offline),
                                 read_delay("--report-delay", typed.report_delay, options.delays.report),
                                 read_time("--bind-time", typed.bind_time, options.bind_time),
                                 read_time("--unbind-time", typed.unbind_time, options.unbind_time),
                                 read_time("--erase-time", typed.erase_time, options.erase_time)})
        if (!done) return std::unexpected(done.error());
    for (const std::string& text : typed.faults) {
        auto fault = read_fault(text);
        if (!fault) return std::unexpected(fault.error());
        options.faults.push_back(*std::move(fault));
    }
    const auto topology = plan_fleet(options);
    if (!topology) return std::unexpected(topology.error());
    if (const auto fits = manager_config(*topology, options.manager, {"state"}); !fits)
        return std::unexpected(about("--manager", fits.error()));
    if (auto fits = check_certificates(typed); !fits) return std::unexpected(std::move(fits.error()));
    return options;
}

// A manager that reads it meanwhile sees the old file or the whole new one.
Result<> write_file(const std::string& path, const std::string& text) {
    const std::string fresh = path + ".new";
    std::ofstream file(fresh, std::ios::trunc);
    file << text;
    file.close();
    std::error_code error;
    if (file) std::filesystem::rename(fresh, path, error);
    if (!file || error) return fail_errno("write", path, error ? error.value() : errno);
    return {};
}

void print_ready(const HostsOptions& typed, const FleetOptions& options, const Topology& topology,
                 const http::Server& control) {
    const std::size_t hosts = fleet_hosts(topology, options).size();
    std::cout << fmt::format("{} host{}, {} switch{}; their agents ask {}\n", hosts, hosts == 1 ? "" : "s",
                             topology.switches.size(), topology.switches.size() == 1 ? "" : "es",
                             options.manager);
    if (!typed.control.empty()) {
        std::string address = typed.control;
        if (address.ends_with(":0")) address.replace(address.size() - 1, 1, std::to_string(control.port()));
        std::cout << "control on " << address << '\n';
    }
    if (!typed.write_config.empty())
        std::cout << "start the manager: memtide-fabric-manager --config " << typed.write_config << '\n';
    std::cout.flush();
    daemon::notify_ready(fmt::format("{} emulated hosts", hosts));
}

Result<> run(const HostsOptions& typed, const FleetOptions& options,
             const std::optional<Scenario>& scenario) {
    asio::io_context context(1);
    auto fleet = Fleet::open(context.get_executor(), options);
    if (!fleet) return std::unexpected(fleet.error());
    if (!typed.pcap.empty()) {
        const auto capture = fmapi::SessionCapture::open(typed.pcap);
        if (!capture) return std::unexpected(about("--pcap", capture.error()));
        (*fleet)->capture(**capture);
    }
    const Topology topology = (*fleet)->topology();
    if (!typed.write_config.empty()) {
        const std::string state =
            typed.state.empty() ? fmt::format("/tmp/memtide-{}.db", topology.name) : typed.state;
        const ManagerFiles files = manager_files(state, options.certificates.folder);
        const auto text = manager_config(topology, options.manager, files);
        if (const auto written = write_file(typed.write_config, *text); !written) return written;
    }
    FleetEquipment equipment(**fleet);
    FaultBoard board(context.get_executor(), equipment);
    http::Router router;
    add_control_routes(router, **fleet, board);
    http::Server control(context.get_executor(), router);
    if (!typed.control.empty())
        if (auto listening = control.listen(typed.control); !listening)
            return std::unexpected(about("--control", listening.error()));
    auto live = [](Fleet& one, FaultBoard& faults, http::Server& server) -> asio::awaitable<void> {
        co_await daemon::wait_for_shutdown_signal();
        daemon::notify_stopping();
        faults.stop();
        one.stop();
        co_await server.stop(milliseconds(500));
    };
    std::exception_ptr failure;
    asio::co_spawn(context, live(**fleet, board, control), [&](const std::exception_ptr& error) {
        failure = error;
        if (error) context.stop();
    });
    // Behind the first step of that: whoever has read that it runs may end it.
    asio::post(context, [&] {
        (*fleet)->start();
        if (scenario) (void)board.play(*scenario, typed.scenario.speed);
        print_ready(typed, options, topology, control);
    });
    context.run();
    if (failure) std::rethrow_exception(failure);
    return {};
}

int run_hosts(const HostsOptions& typed) {
    const auto options = read(typed);
    if (!options) {
        std::cerr << "memtide-cxl-emul: " << options.error().message << '\n';
        return daemon::kExitUsage;
    }
    // Planned once more only for what needs it: that takes its time with many hosts, and read() has seen it.
    const Result<Topology> topology = typed.scenario.file.empty() ? Topology() : plan_fleet(*options);
    if (!topology) {
        std::cerr << "memtide-cxl-emul: " << topology.error().message << '\n';
        return daemon::kExitUsage;
    }
    const auto scenario = chosen_scenario(typed.scenario, *topology);
    if (!scenario) {
        std::cerr << scenario.error().message << '\n';
        return daemon::kExitUsage;
    }
    log::set_level(typed.verbose ? log::Level::kDebug : log::Level::kWarning);
    daemon::ignore_sigpipe();
    daemon::ignore_sigxfsz();
    daemon::raise_file_limit();
    if (const auto done = run(typed, *options, *scenario); !done) {
        std::cerr << "memtide-cxl-emul: " << done.error().message << '\n';
        return daemon::kExitFailure;
    }
    return daemon::kExitOk;
}

// What cannot be converted is told in the words of what can; the upper limits are the fleet's.
CLI::Validator from(std::uint64_t least) {
    const auto check = [least](const std::string& text) -> std::string {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc{} && end == text.data() + text.size();
        if (whole && value >= least) return {};
        return fmt::format("must be a whole number of at least {}, not {}", least, text);
    };
    return {check, ""};
}

}  // namespace

void add_hosts_command(CLI::App& app, std::function<int()>& chosen) {
    auto options = std::make_shared<HostsOptions>();
    FleetOptions& fleet = options->fleet;
    CLI::App* command = app.add_subcommand(
        "hosts", "Run emulated hosts and the switches they hang on: scale and faults without QEMU");
    command->add_option("--count", fleet.count, "How many hosts: host0, host1, ...")->check(from(1));
    auto* const topology = command->add_option(
        "--topology", fleet.topology,
        "Or: the hosts, switches and devices of this topology file (they listen where --listen says)");
    command->add_option("--switches", fleet.switches, "How many switches (default: one for each 32 hosts)")
        ->check(from(0));
    command->add_option("--devices", fleet.devices, "Devices behind each switch")
        ->check(from(1))
        ->capture_default_str();
    command->add_option("--kind", options->kind, "Kind of the devices: mld, sld or dcd")
        ->check(CLI::IsMember({"mld", "sld", "dcd"}))
        ->capture_default_str();
    command
        ->add_option("--lds", fleet.lds,
                     "Logical devices of each MLD, or hosts that can have memory of a DCD")
        ->check(from(1))
        ->capture_default_str();
    command
        ->add_option("--ld-size", options->ld_size,
                     "Size of each logical device, or SLD; a DCD has as much for each host")
        ->capture_default_str();
    command
        ->add_option("--heads", fleet.heads,
                     "Heads of each device, at as many switches: above 1 they are multi-headed and --devices "
                     "counts them for each group of switches")
        ->check(from(1))
        ->capture_default_str();
    command->add_option("--vppbs", fleet.vppbs, "Slots of each host")->check(from(1))->capture_default_str();
    command
        ->add_option("--listen", fleet.listen,
                     "Where the switches listen: tcp://127.0.0.1:0 (any ports), :PORT (that one and the next "
                     "ones) or unix:///FOLDER")
        ->capture_default_str();
    command
        ->add_option("--manager", fleet.manager,
                     "The fabric manager: http://ADDRESS:PORT, https://ADDRESS:PORT or unix:/PATH")
        ->capture_default_str();
    command->add_option("--ca", fleet.certificates.ca,
                        "Whose certificate an https:// manager has (default: ca.pem of --agent-certs, or the "
                        "system's CAs)");
    command->add_option("--agent-certs", fleet.certificates.folder,
                        "Folder with agent-HOST.pem and agent-HOST.key of each host, as "
                        "`memtide-fabric-manager certs init DIR --emulated-hosts N` makes it: what the hosts "
                        "show to an https:// manager");
    command->add_option("--write-config", options->write_config,
                        "Write the fitting configuration of the manager to this file");
    command->add_option("--state", options->state,
                        "The journal that configuration names (default: /tmp/memtide-TOPOLOGY.db); the hosts "
                        "remember nothing, so a manager that begins with them begins without it");
    command
        ->add_option("--online-delay", options->online_delay,
                     "How long onlining takes: 20ms, 5ms..50ms or exp:20ms")
        ->capture_default_str();
    command->add_option("--offline-delay", options->offline_delay, "How long taking offline takes")
        ->capture_default_str();
    command->add_option("--report-delay", options->report_delay, "How late a report is")
        ->capture_default_str();
    command->add_option("--bind-time", options->bind_time, "How long a bind takes")->capture_default_str();
    command->add_option("--unbind-time", options->unbind_time, "How long an unbind takes")
        ->capture_default_str();
    command->add_option("--erase-time", options->erase_time, "How long a sanitize takes")
        ->capture_default_str();
    command
        ->add_option(
            "--fault", options->faults,
            fmt::format("A fault that this share of the hosts has from the start, NAME=0.05: {}; may "
                        "be given more than once",
                        fmt::join(host_fault_names(), ", ")))
        ->allow_extra_args(false);
    command->add_option("--seed", fleet.seed, "Of delays and faults")->check(from(0))->capture_default_str();
    command->add_option("--control", options->control,
                        "Serve faults and what was seen here: 127.0.0.1:PORT or unix:/PATH");
    add_scenario_options(*command, options->scenario, "the start");
    command->add_option("--pcap", options->pcap, kPcapHelp)->type_name("FILE")->check(something());
    command->add_flag("--verbose", options->verbose, "Log every command and connection");
    for (const char* shape :
         {"--count", "--switches", "--devices", "--kind", "--lds", "--ld-size", "--heads", "--vppbs"})
        topology->excludes(command->get_option(shape));
    command->footer(
        "Examples:\n"
        "  hosts --count 100 --write-config /tmp/fm.yaml\n"
        "  hosts --topology config/topologies/sparse-pod.yaml --write-config /tmp/fm.yaml\n"
        "  hosts --count 100 --write-config /tmp/fm.yaml --manager https://127.0.0.1:8443 --agent-certs "
        "/tmp/certs\n"
        "Then: memtide-fabric-manager --config /tmp/fm.yaml. docs/emulated-hosts.md tells more.");
    command->callback([options, &chosen] { chosen = [options] { return run_hosts(*options); }; });
}

}  // namespace memtide::emul
