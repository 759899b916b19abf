// memtide-tiering-agent: parses, wires the parts together and runs them.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <unistd.h>

#include "common/base/no_throw.h"
#include "common/daemon/daemon.h"
#include "common/http/credentials.h"
#include "common/log/log.h"
#include "common/usage/explain.h"
#include "tiering-agent/app/agent_config.h"
#include "tiering-agent/app/live_config.h"
#include "tiering-agent/app/once.h"
#include "tiering-agent/app/tiering_service.h"
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

// What the fabric manager wants of this host, and what becomes of it.
class FabricService {
  public:
    // `on_observed` is called on a thread of its own with what is true of this host, each time it changes.
    static Result<std::unique_ptr<FabricService>> start(boost::asio::io_context& io, Files& files,
                                                        const AgentConfig& config, const std::string& boot_id,
                                                        std::function<void(const Observed&)> on_observed) {
        auto credentials = http::Credentials::load(config.credentials);
        if (!credentials) return std::unexpected(std::move(credentials.error()));
        auto records = RegionRecords::open(config.state, boot_id);
        if (!records) return std::unexpected(std::move(records.error()));
        auto modules = config.load_modules ? make_kmod_loader() : make_disabled_loader();
        if (config.load_modules) load_modules(*modules);
        std::unique_ptr<FabricService> service(
            new FabricService(io, files, config, boot_id, *std::move(records), std::move(modules),
                              *std::move(credentials), std::move(on_observed)));
        service->controller_.start();
        service->channel_.start();
        return service;
    }
    void stop() { controller_.stop(); }

  private:
    FabricService(boost::asio::io_context& io, Files& files, const AgentConfig& config,
                  const std::string& boot_id, RegionRecords records, std::unique_ptr<ModuleLoader> modules,
                  std::shared_ptr<http::Credentials> credentials,
                  std::function<void(const Observed&)> on_observed)
        : records_(std::move(records)),
          modules_(std::move(modules)),
          bus_(make_libcxl_bus(files)),
          mover_(make_page_mover()),
          host_({files, *bus_, records_, *modules_, *mover_, interruption_}),
          controller_(host_, interruption_, config.controller,
                      [this, heard = std::move(on_observed)](const Observed& observed) {
                          heard(observed);
                          channel_.set_observed(observed);
                      }),
          channel_(io.get_executor(),
                   {.manager = config.manager,
                    .host = config.host,
                    .identity = {.version = MEMTIDE_VERSION, .boot_id = boot_id},
                    .credentials = std::move(credentials),
                    .timing = config.channel},
                   [this](const Desired& desired) { controller_.set_desired(desired); }) {}

    RegionRecords records_;
    std::unique_ptr<ModuleLoader> modules_;
    std::unique_ptr<CxlBus> bus_;
    std::unique_ptr<PageMover> mover_;
    Interruption interruption_;
    SysfsHost host_;
    Controller controller_;
    Channel channel_;
};

// Tiering must not fill what hot-plug drains.
std::set<int> nodes_that_leave(const Observed& observed) {
    std::set<int> nodes;
    for (const ObservedRegion& region : observed.regions)
        if (region.status == RegionStatus::kDraining && region.node) nodes.insert(*region.node);
    return nodes;
}

// SIGHUP: what can change without a restart does.
boost::asio::awaitable<void> reload_on_hangup(LiveConfig& live, TieringService* tiering) {
    boost::asio::signal_set signals(co_await boost::asio::this_coro::executor, SIGHUP);
    for (;;) {
        const auto [error, number] = co_await signals.async_wait(kNoThrow);
        if (error) co_return;
        if (tiering != nullptr)
            (void)tiering->reload("SIGHUP");
        else if (const auto change = live.reload(); !change)
            log::error("the configuration cannot be used", {{"error", change.error()}});
        else
            log::warning("this agent does no tiering: another configuration needs a restart");
    }
}

int serve(LiveConfig& live) {
    const AgentConfig& config = live.config();
    Files files;
    const auto boot_id = files.read("proc/sys/kernel/random/boot_id");
    if (!boot_id) return failure(boot_id.error().message);
    boost::asio::io_context io;
    std::unique_ptr<TieringService> tiering;
    if (config.tiering.mode != TieringMode::kOff) {
        std::error_code ignored;  // the socket's own error says it better
        std::filesystem::create_directories(config.state, ignored);
        auto started = TieringService::start(io.get_executor(), files, live, config.state + "/agent.sock");
        // A host that gets its memory from a fabric manager goes on doing so.
        if (!started && config.manager.empty()) return failure(started.error().message);
        if (started)
            tiering = *std::move(started);
        else
            log::error("tiering cannot run", {{"error", started.error()}});
    }
    std::unique_ptr<FabricService> fabric;
    if (!config.manager.empty()) {
        auto started = FabricService::start(io, files, config, *boot_id, [&](const Observed& observed) {
            if (tiering) tiering->set_leaving(nodes_that_leave(observed));
        });
        if (!started) return failure(started.error().message);
        fabric = *std::move(started);
    }

    const auto hangup = live.file().empty() ? daemon::Hangup::kEnds : daemon::Hangup::kIsTakenElsewhere;
    boost::asio::co_spawn(
        io,
        [&]() -> boost::asio::awaitable<void> {
            co_await daemon::wait_for_shutdown_signal(hangup);
            daemon::notify_stopping();
            if (tiering) co_await tiering->stop();
            io.stop();
        },
        boost::asio::detached);
    if (!live.file().empty())
        boost::asio::co_spawn(io, reload_on_hangup(live, tiering.get()), boost::asio::detached);
    log::info("agent started", {{"host", config.host}, {"manager", config.manager}});
    daemon::notify_ready("serving host " + config.host.value);
    io.run();
    // Memory that is online stays online; what was under way goes on after the next start.
    if (fabric) fabric->stop();
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
    CLI::App app{
        "Onlines and releases the pooled CXL memory that a fabric manager gives to this host, and keeps hot "
        "pages "
        "in fast memory",
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
            "needs root: it creates CXL regions, onlines memory, and looks at and moves pages of other "
            "processes (--once "
            "works without)");
    daemon::ignore_sigpipe();
    LiveConfig live(*config, options.config_path, [&options]() -> Result<AgentConfig> {
        auto loaded = read_config(options);
        if (!loaded) return loaded;
        if (auto good = check_config(*loaded); !good) return std::unexpected(std::move(good.error()));
        return loaded;
    });
    return serve(live);
}
