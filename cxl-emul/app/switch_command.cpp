#include "cxl-emul/app/switch_command.h"

#include <cerrno>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "common/daemon/daemon.h"
#include "common/log/log.h"
#include "cxl-emul/switch/switch.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {
namespace {

struct SwitchOptions {
    std::string file;
    std::string name;
    bool check_config = false;
    bool verbose = false;
};

std::vector<SwitchConfig> selected(const Topology& topology, const std::string& name) {
    if (name.empty()) return topology.switches;
    const SwitchConfig* one = topology.find_switch(SwitchId(name));
    return one == nullptr ? std::vector<SwitchConfig>() : std::vector{*one};
}

int serve(const Topology& topology, const std::vector<SwitchConfig>& configs) {
    boost::asio::io_context context(1);
    std::vector<std::unique_ptr<Switch>> switches;
    const auto shared = open_shared_devices(topology, configs);
    if (!shared) {
        std::cerr << "memtide-cxl-emul: " << shared.error().message << '\n';
        return daemon::kExitFailure;
    }
    for (const SwitchConfig& config : configs) {
        auto opened = Switch::open(context.get_executor(), topology, config, no_hotplug(), {}, *shared);
        if (!opened) {
            std::cerr << "memtide-cxl-emul: " << opened.error().message << '\n';
            return daemon::kExitFailure;
        }
        switches.push_back(*std::move(opened));
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
    if (options.check_config) {
        std::cout << options.file << ": ok\n";
        return daemon::kExitOk;
    }
    if (options.verbose) log::set_level(log::Level::kDebug);
    daemon::ignore_sigpipe();
    // A file size limit is a full disk like any other, and no reason to die.
    std::signal(SIGXFSZ, SIG_IGN);
    return serve(*topology, configs);
}

}  // namespace

void add_switch_command(CLI::App& app, std::function<int()>& chosen) {
    auto options = std::make_shared<SwitchOptions>();
    CLI::App* command = app.add_subcommand("switch", "Run the switches of a topology file, without hosts");
    command->add_option("FILE", options->file, "Topology file (YAML)")->required();
    command->add_option("--name", options->name, "Run only this switch of the file");
    command->add_flag("--check-config", options->check_config, "Only check the file");
    command->add_flag("--verbose", options->verbose, "Log every command and connection");
    command->callback([options, &chosen] { chosen = [options] { return run_switch(*options); }; });
}

}  // namespace memtide::emul
