#include "cxl-emul/app/switch_command.h"

#include <cerrno>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "common/daemon/daemon.h"
#include "common/fmapi/capture/session_capture.h"
#include "common/log/log.h"
#include "common/usage/explain.h"
#include "cxl-emul/control/switch_control.h"
#include "cxl-emul/faults/control.h"
#include "cxl-emul/faults/scenario_options.h"
#include "cxl-emul/faults/switch_equipment.h"
#include "cxl-emul/switch/switch.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {
namespace {

struct SwitchOptions {
    std::string file;
    std::string name;
    std::string control;
    ScenarioOptions scenario;
    std::string pcap;
    bool check_config = false;
    bool verbose = false;
};

std::vector<SwitchConfig> selected(const Topology& topology, const std::string& name) {
    if (name.empty()) return topology.switches;
    const SwitchConfig* one = topology.find_switch(SwitchId(name));
    return one == nullptr ? std::vector<SwitchConfig>() : std::vector{*one};
}

// What can go wrong in a process like this; nothing without a control interface and a scenario.
struct Faults {
    std::optional<Scenario> scenario;
    double speed = 1;
    std::string control;
    [[nodiscard]] bool wanted() const { return scenario || !control.empty(); }
};

Result<std::unique_ptr<FaultService>> start_faults(boost::asio::io_context& context, Equipment& equipment,
                                                   const std::vector<Switch*>& switches,
                                                   const Faults& faults) {
    auto service = std::make_unique<FaultService>(context.get_executor(), equipment);
    add_switch_routes(service->router(), find_among(switches));
    if (!faults.control.empty()) {
        const auto address = service->listen(faults.control);
        if (!address) return std::unexpected(Error(address.error()).with_context("--control"));
        std::cout << "control on " << *address << std::endl;
    }
    if (faults.scenario)
        if (auto played = service->board().play(*faults.scenario, faults.speed); !played)
            return std::unexpected(played.error());
    return service;
}

int fail_with(const Error& error) {
    std::cerr << "memtide-cxl-emul: " << error.message << '\n';
    return daemon::kExitFailure;
}

int serve(const Topology& topology, const std::vector<SwitchConfig>& configs, const Faults& faults,
          const std::string& pcap) {
    boost::asio::io_context context(1);
    std::vector<std::unique_ptr<Switch>> switches;
    std::shared_ptr<fmapi::SessionCapture> capture;
    if (!pcap.empty()) {
        auto opened = fmapi::SessionCapture::open(pcap);
        if (!opened) return fail_with(std::move(opened.error()).with_context("--pcap"));
        capture = *std::move(opened);
    }
    const auto shared = open_shared_devices(topology, configs);
    if (!shared) return fail_with(shared.error());
    for (const SwitchConfig& config : configs) {
        auto opened = Switch::open(context.get_executor(), topology, config, no_hotplug(), {}, *shared);
        if (!opened) return fail_with(opened.error());
        if (capture) (*opened)->capture(capture->of_switch(config.name.value));
        switches.push_back(*std::move(opened));
    }
    std::vector<Switch*> running;
    for (const auto& sw : switches) running.push_back(sw.get());
    SwitchEquipment equipment(topology, running);
    std::unique_ptr<FaultService> service;
    if (faults.wanted()) {
        auto started = start_faults(context, equipment, running, faults);
        if (!started) return fail_with(started.error());
        service = *std::move(started);
    }
    for (const auto& sw : switches) {
        sw->start();
        for (const std::string& address : sw->addresses())
            std::cout << sw->name().value << " listening on " << address << std::endl;
    }
    daemon::notify_ready(fmt::format("{} switch(es) of topology {}", switches.size(), topology.name));

    boost::asio::co_spawn(context, daemon::wait_for_shutdown_signal(), [&](const std::exception_ptr&) {
        daemon::notify_stopping();
        for (const auto& sw : switches) sw->stop();
        if (service) boost::asio::co_spawn(context, service->stop(), boost::asio::detached);
    });
    context.run();
    return daemon::kExitOk;
}

int run_switch(const SwitchOptions& options) {
    const auto topology = load_topology(options.file);
    if (!topology) {
        std::cerr << topology.error().message << '\n';
        return daemon::kExitUsage;
    }
    const std::vector<SwitchConfig> configs = selected(*topology, options.name);
    if (topology->switches.empty()) {
        std::cerr << fmt::format("{0}: this topology has no switches; `memtide rack up {0}` runs its hosts\n",
                                 options.file);
        return daemon::kExitUsage;
    }
    if (configs.empty()) {
        std::cerr << fmt::format("{}: there is no switch \"{}\"\n", options.file, options.name);
        return daemon::kExitUsage;
    }
    Topology served = *topology;
    served.switches = configs;
    auto scenario = chosen_scenario(options.scenario, served);
    if (!scenario) {
        std::cerr << scenario.error().message << '\n';
        return daemon::kExitUsage;
    }
    const Faults faults{*std::move(scenario), options.scenario.speed, options.control};
    if (options.check_config) {
        std::cout << options.file << ": ok\n";
        return daemon::kExitOk;
    }
    if (options.verbose) log::set_level(log::Level::kDebug);
    daemon::ignore_sigpipe();
    daemon::ignore_sigxfsz();
    return serve(*topology, configs, faults, options.pcap);
}

}  // namespace

void add_switch_command(CLI::App& app, std::function<int()>& chosen) {
    auto options = std::make_shared<SwitchOptions>();
    CLI::App* command = app.add_subcommand("switch", "Run the switches of a topology file, without hosts");
    command->add_option("FILE", options->file, "Topology file (YAML)")->required();
    command->add_option("--name", options->name, "Run only this switch of the file");
    command->add_option(
        "--control", options->control,
        "Serve faults on demand, for `fault`, and changes of virtual switches and bandwidth here: "
        "127.0.0.1:PORT or unix:/PATH");
    add_scenario_options(*command, options->scenario, "the start");
    command->add_option("--pcap", options->pcap, kPcapHelp)->type_name("FILE")->check(something());
    command->add_flag("--check-config", options->check_config, "Only check the files");
    command->add_flag("--verbose", options->verbose, "Log every command and connection");
    command->callback([options, &chosen] { chosen = [options] { return run_switch(*options); }; });
}

}  // namespace memtide::emul
