// memtide-tiering-agent: parses, wires the parts together and runs them.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <unistd.h>

#include "common/daemon/daemon.h"
#include "common/http/credentials.h"
#include "common/log/log.h"
#include "common/usage/explain.h"
#include "tiering-agent/app/agent_config.h"
#include "tiering-agent/app/once.h"
#include "tiering-agent/hotplug/host.h"

namespace {

using namespace memtide;
using namespace memtide::agent;

int usage(const std::string& what) {
    std::fprintf(stderr, "memtide-tiering-agent: %s\n", what.c_str());
    return daemon::kExitUsage;
}
int failure(const std::string& what) {
    std::fprintf(stderr, "memtide-tiering-agent: %s\n", what.c_str());
    return daemon::kExitFailure;
}

struct Options {
    std::string config_path;
    std::string manager;
    std::string host;
    http::CredentialFiles credentials;
    bool check_only = false;
    bool once = false;
    bool json = false;
    bool verbose = false;
};

Result<AgentConfig> read_config(const Options& options) {
    AgentConfig config;
    if (!options.config_path.empty()) {
        auto loaded = load_config(options.config_path);
        if (!loaded) return loaded;
        config = std::move(*loaded);
    }
    if (!options.manager.empty()) config.manager = options.manager;
    const auto prefer = [](const std::string& given, std::string& into) {
        if (!given.empty()) into = given;
    };
    prefer(options.credentials.tls.ca, config.credentials.tls.ca);
    prefer(options.credentials.tls.certificate, config.credentials.tls.certificate);
    prefer(options.credentials.tls.key, config.credentials.tls.key);
    prefer(options.credentials.token_file, config.credentials.token_file);
    if (!options.host.empty()) config.host = HostId{options.host};
    if (config.host.value.empty()) config.host = default_host();
    return config;
}

// Details of every region with a memdev, and no change to anything.
int print_once(bool as_json) {
    Files files;
    const auto bus = make_libcxl_bus(files);
    const auto view = bus->enumerate();
    if (!view) return failure(view.error().message);
    std::vector<SerialNumber> serials;
    for (const Memdev& memdev : view->memdevs) serials.push_back(memdev.serial);
    RegionRecords records;
    const auto modules = make_disabled_loader();
    const auto mover = make_page_mover();
    Interruption interruption;
    SysfsHost host({files, *bus, records, *modules, *mover, interruption});
    const auto seen = host.look(serials);
    if (!seen) return failure(seen.error().message);
    if (geteuid() != 0)
        std::fprintf(stderr, "memtide-tiering-agent: without root, some addresses cannot be seen\n");
    std::fputs((as_json ? seen_as_json(*seen) : seen_as_text(*seen)).c_str(), stdout);
    return daemon::kExitOk;
}

void load_modules(ModuleLoader& loader) {
    for (const std::string& name : cxl_modules())
        if (const auto loaded = loader.load(name); !loaded)
            log::warning("kernel module is missing", {{"module", name}, {"reason", loaded.error()}});
}

int serve(const AgentConfig& config) {
    const auto credentials = http::Credentials::load(config.credentials);
    if (!credentials) return failure(credentials.error().message);
    Files files;
    const auto boot_id = files.read("proc/sys/kernel/random/boot_id");
    if (!boot_id) return failure(boot_id.error().message);
    auto records = RegionRecords::open(config.state, *boot_id);
    if (!records) return failure(records.error().message);
    const auto modules = config.load_modules ? make_kmod_loader() : make_disabled_loader();
    if (config.load_modules) load_modules(*modules);

    const auto bus = make_libcxl_bus(files);
    const auto mover = make_page_mover();
    Interruption interruption;
    SysfsHost host({files, *bus, *records, *modules, *mover, interruption});

    boost::asio::io_context io;
    Channel* reports_to = nullptr;
    Controller controller(host, interruption, config.controller,
                          [&](const Observed& observed) { reports_to->set_observed(observed); });
    Channel channel(io.get_executor(),
                    {.manager = config.manager,
                     .host = config.host,
                     .identity = {.version = MEMTIDE_VERSION, .boot_id = *boot_id},
                     .credentials = *credentials,
                     .timing = config.channel},
                    [&](const Desired& desired) { controller.set_desired(desired); });
    reports_to = &channel;

    boost::asio::co_spawn(
        io,
        [&]() -> boost::asio::awaitable<void> {
            co_await daemon::wait_for_shutdown_signal();
            io.stop();
        },
        boost::asio::detached);
    controller.start();
    channel.start();
    log::info("agent started", {{"host", config.host}, {"manager", config.manager}});
    daemon::notify_ready("serving host " + config.host.value);
    io.run();
    daemon::notify_stopping();
    // Memory that is online stays online; what was under way goes on after the next start.
    controller.stop();
    log::info("agent stopped");
    return daemon::kExitOk;
}

// Also what the configuration names can be wrong.
int report_good(const Options& options, const AgentConfig& config) {
    if (const auto credentials = http::Credentials::load(config.credentials); !credentials)
        return usage(credentials.error().message);
    std::printf("%s: ok\n",
                options.config_path.empty() ? "memtide-tiering-agent" : options.config_path.c_str());
    return daemon::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Onlines and releases the pooled CXL memory that a fabric manager gives to this host",
                 "memtide-tiering-agent"};
    app.set_version_flag("--version", "memtide-tiering-agent " MEMTIDE_VERSION);
    Options options;
    app.add_option("--config", options.config_path, "Configuration file (YAML)");
    app.add_option("--manager", options.manager,
                   "Fabric manager: https://HOST:PORT, http://HOST:PORT or unix:/PATH");
    app.add_option("--ca", options.credentials.tls.ca, "CA that the manager's certificate must be of (PEM)");
    app.add_option("--cert", options.credentials.tls.certificate, "This host's certificate (PEM)");
    app.add_option("--key", options.credentials.tls.key, "Its key (PEM)");
    app.add_option("--token-file", options.credentials.token_file, "File with a token for this host");
    app.add_option("--host", options.host,
                   "Name of this host at the fabric manager (default: the machine's name)");
    app.add_flag("--check-config", options.check_only, "Check the configuration and exit");
    app.add_flag("--once", options.once, "Print the CXL memory of this host and exit; changes nothing");
    app.add_flag("--json", options.json, "With --once: as JSON");
    app.add_flag("--verbose", options.verbose, "Log more");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return end_of_parsing(app, error);
    }

    const auto config = read_config(options);
    if (!config) {
        std::fprintf(stderr, "%s\n", config.error().message.c_str());
        return daemon::kExitUsage;
    }
    if (options.verbose) log::set_level(log::Level::kDebug);
    if (options.once) return print_once(options.json);
    if (options.json) return usage("--json is for --once");
    if (const auto good = check_config(*config); !good) return usage(good.error().message);
    if (options.check_only) return report_good(options, *config);
    if (geteuid() != 0)
        return failure(
            "needs root: it creates CXL regions and onlines memory through /sys (--once works without)");
    daemon::ignore_sigpipe();
    return serve(*config);
}
