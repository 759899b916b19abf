// memtide-fabric-manager: reads the configuration, wires the parts together, runs until told to stop.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "common/base/file_owner.h"
#include "common/daemon/daemon.h"
#include "common/fmapi/capture/session_capture.h"
#include "common/http/server.h"
#include "common/log/log.h"
#include "common/metrics/process.h"
#include "common/metrics/registry.h"
#include "fabric-manager/app/config.h"
#include "fabric-manager/app/options.h"
#include "fabric-manager/app/upkeep.h"
#include "fabric-manager/engine/manager.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/fmapi/meter.h"
#include "fabric-manager/rest/api.h"
#include "fabric-manager/security/gate.h"
#include "fabric-manager/security/token_file.h"
#include "fabric-manager/store/backup.h"
#include "fabric-manager/store/files.h"
#include "fabric-manager/store/store.h"

namespace memtide::fm {
namespace {

namespace asio = boost::asio;

// The store would say "unable to open"; that its folder is missing is what most people need to hear.
Result<> check_state_folder(const AppConfig& config) {
    const std::filesystem::path folder = std::filesystem::absolute(config.state).parent_path();
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) return {};
    return fail(ErrorCode::kNotFound,
                fmt::format("the folder of the state file {} does not exist; create it (install -d -m 750 "
                            "{}) or change \"state\" in the configuration",
                            config.state, folder.string()));
}

Result<std::unique_ptr<Store>> open_store(const AppConfig& config, bool recover) {
    if (const auto folder = check_state_folder(config); !folder) return std::unexpected(folder.error());
    return open_sqlite_store({.path = config.state, .limit = config.state_limit, .recover = recover});
}

Result<FmApiClients> make_clients(const asio::any_io_executor& executor, const AppConfig& config,
                                  metrics::Registry& metrics) {
    FmApiClients clients;
    std::shared_ptr<fmapi::SessionCapture> capture;
    if (!config.capture.empty()) {
        auto file = fmapi::SessionCapture::open(config.capture);
        if (!file) return std::unexpected(std::move(file.error()).with_context("capture"));
        capture = *std::move(file);
    }
    for (const ManagerSwitch& item : config.manager.switches) {
        ClientOptions options;
        const SwitchLink& link = config.links.at(item.id);
        options.address = item.address;
        options.listen = link.listen;
        options.dialect = link.dialect;
        options.in_flight = link.in_flight;
        options.assign_endpoint = link.eid.has_value();
        options.switch_endpoint = link.eid.value_or(0);
        options.connect_timeout = config.connect_timeout;
        options.command_timeout = config.command_timeout;
        if (capture) options.capture = capture->of_switch(item.id.value);
        options.observer = round_trip_meter(metrics, item.id);
        auto client = make_fm_api_client(executor, std::move(options));
        if (!client)
            return std::unexpected(std::move(client.error()).with_context("switch " + item.id.value));
        clients.emplace(item.id, *std::move(client));
    }
    return clients;
}

Result<std::shared_ptr<tls::ServerContext>> open_tls(const AppConfig& config) {
    if (!config.security.tls) return nullptr;
    auto context = tls::ServerContext::load(*config.security.tls);
    if (!context) return std::unexpected(std::move(context.error()).with_context("tls"));
    return context;
}

Result<std::unique_ptr<Gate>> open_gate(const AppConfig& config, metrics::Registry& metrics) {
    std::unique_ptr<AuditFile> audit;
    if (config.security.audit) {
        auto opened = open_audit_file(*config.security.audit);
        if (!opened) return std::unexpected(std::move(opened.error()));
        audit = *std::move(opened);
    }
    return Gate::open(config.security.gate, std::move(audit), metrics);
}

// For whoever started the program: where it answers, with the port it got in place of port 0.
void print_ready(const AppConfig& config, const http::Server& server) {
    for (std::string address : config.listen) {
        if (address.ends_with(":0")) address.replace(address.size() - 1, 1, std::to_string(server.port()));
        std::fputs(fmt::format("memtide-fabric-manager: listening on {}\n", address).c_str(), stdout);
        log::info("listening", {{"address", address}, {"state", config.state}});
    }
    std::fflush(stdout);
}

asio::awaitable<void> run_until_stopped(const AppConfig& config, Manager& manager, http::Server& server) {
    using namespace asio::experimental::awaitable_operators;
    manager.start();
    print_ready(config, server);
    daemon::notify_ready("serving REST");
    co_await daemon::wait_for_shutdown_signal(daemon::Hangup::kIsTakenElsewhere);
    daemon::notify_stopping();
    log::info("stopping");
    // Together: the server stops accepting at once, the manager ends the long polls that it waits for.
    co_await (server.stop(config.shutdown_grace) && manager.stop());
}

Result<> run(const AppConfig& config, bool recover) {
    asio::io_context context(1);
    metrics::Registry metrics;
    metrics::add_process_metrics(metrics, "memtide-fabric-manager", MEMTIDE_VERSION);
    auto store = open_store(config, recover);
    if (!store) return std::unexpected(store.error());
    auto clients = make_clients(context.get_executor(), config, metrics);
    if (!clients) return std::unexpected(clients.error());
    auto manager = Manager::open(context.get_executor(), config.manager, *std::move(store),
                                 *std::move(clients), metrics);
    if (!manager) return std::unexpected(manager.error());
    const auto tls = open_tls(config);
    if (!tls) return std::unexpected(tls.error());
    const auto gate = open_gate(config, metrics);
    if (!gate) return std::unexpected(gate.error());
    const RestApi api(**manager, metrics, RestOptions{.gate = gate->get()});
    http::Server server(context.get_executor(), api.router(), config.http,
                        {*tls, [&gate](const std::string& peer, const std::string& why) {
                             (*gate)->tls_refused(peer, why);
                         }});
    metrics.before_render([&] {
        metrics.gauge("memtide_http_connections", "Connections that are open.")
            .set(static_cast<double>(server.connection_count()));
    });
    for (const std::string& address : config.listen)
        if (auto listening = server.listen(address); !listening) return listening;
    asio::co_spawn(context, keep_up(**gate, *tls), asio::detached);
    asio::co_spawn(context, run_until_stopped(config, **manager, server),
                   [&context](const std::exception_ptr& error) {
                       context.stop();
                       if (error) std::rethrow_exception(error);
                   });
    context.run();
    return {};
}

// What the configuration names, as far as that can be known without changing anything.
int check_files(const AppConfig& config, const std::string& name) {
    std::string wrong;
    const auto add = [&](const Error& error) { wrong += fmt::format("{}: {}\n", name, error.message); };
    if (const auto folder = check_state_folder(config); !folder) add(folder.error());
    if (const auto tls = open_tls(config); !tls) add(tls.error());
    if (config.security.gate.authentication) {
        const std::string& path = config.security.gate.tokens;
        if (const auto tokens = load_tokens(path); !tokens)
            add(tokens.error());
        else if (tokens->empty())
            std::fputs(fmt::format("{}: there are no tokens in {} yet; `memtide-fabric-manager token create` "
                                   "makes them\n",
                                   name, path)
                           .c_str(),
                       stderr);
    }
    if (wrong.empty()) {
        std::fputs((name + ": ok\n").c_str(), stdout);
        return daemon::kExitOk;
    }
    std::fputs(wrong.c_str(), stderr);
    return daemon::kExitUsage;
}

// Root leaves the state to whom its folder belongs to: as that user from here on.
Result<> become_owner_of_state(const AppConfig& config) {
    const auto user = become_owner(StatePaths(config.state).database);
    if (!user) return std::unexpected(user.error());
    if (!user->empty())
        log::info("goes on as the user whom the folder of the state belongs to",
                  {{"user", *user}, {"state", config.state}});
    return {};
}

int copy_state(const AppConfig& config, const Options& options) {
    const Result<std::string> done = options.task == Task::kBackup
                                         ? backup_state(config.state, options.backup_file)
                                         : restore_state(config.state, options.backup_file);
    const std::string& text = done ? *done : done.error().message;
    std::fputs(fmt::format("memtide-fabric-manager: {}\n", text).c_str(), done ? stdout : stderr);
    return done ? daemon::kExitOk : daemon::kExitFailure;
}

int main_with(const Options& options) {
    auto config = load_config(options.config);
    if (!config) {
        std::fputs((config.error().message + "\n").c_str(), stderr);
        return daemon::kExitUsage;
    }
    if (!options.pcap.empty()) config->capture = options.pcap;
    if (options.task == Task::kCheckConfig) return check_files(*config, options.config);
    log::set_level(config->log_level);
    log::set_format(config->log_format);
    daemon::ignore_sigpipe();
    daemon::raise_file_limit();
    daemon::ignore_sigxfsz();
    if (const auto user = become_owner_of_state(*config); !user) {
        std::fputs(fmt::format("memtide-fabric-manager: {}\n", user.error().message).c_str(), stderr);
        return daemon::kExitFailure;
    }
    if (options.task != Task::kRun) return copy_state(*config, options);
    try {
        if (const auto done = run(*config, options.recover); !done) {
            log::error("cannot run", {{"error", done.error()}});
            return daemon::kExitFailure;
        }
    } catch (const std::exception& error) {
        log::error("stopped by a fault of its own", {{"error", error.what()}});
        return daemon::kExitFailure;
    }
    log::info("stopped");
    return daemon::kExitOk;
}

}  // namespace
}  // namespace memtide::fm

int main(int argc, char** argv) {
    const auto options = memtide::fm::parse_options(argc, argv);
    if (const int* code = std::get_if<int>(&options)) return *code;
    const auto& chosen = std::get<memtide::fm::Options>(options);
    return chosen.command ? chosen.command() : memtide::fm::main_with(chosen);
}
