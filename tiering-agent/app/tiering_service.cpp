#include "tiering-agent/app/tiering_service.h"

#include <filesystem>
#include <thread>
#include <utility>

#include <unistd.h>

#include "common/http/server.h"
#include "common/log/log.h"
#include "tiering-agent/app/agent_api.h"
#include "tiering-agent/app/machine_lock.h"
#include "tiering-agent/balance/balancer.h"
#include "tiering-agent/observe/published_tiers.h"

namespace memtide::agent {
namespace {

// Programs that ask for memory on a tier learn here which there are, without asking the agent.
void publish(const std::string& path, const Tiers& tiers) {
    if (const auto done = publish_tiers(path, tiers); !done)
        log::warning("tiers cannot be published", {{"error", done.error()}});
}

// `published`: the path of the file that tells every process which tiers there are.
BalanceOptions options_of(const TieringConfig& config, const std::string& published) {
    BalanceOptions options;
    options.config = config;
    options.agent_pid = ::getpid();
    options.on_tiers = [published](const Tiers& tiers) { publish(published, tiers); };
    return options;
}

}  // namespace

struct TieringService::Impl {
    Impl(const boost::asio::any_io_executor& executor, Files& files, MachineLock taken,
         std::unique_ptr<Tracker> chosen, LiveConfig& config, const std::string& published)
        : lock(std::move(taken)),
          tracker(std::move(chosen)),
          mover(make_unit_mover()),
          far(make_swap_tier(files)),
          latency(make_memory_latency()),
          shaper(make_page_shaper(files)),
          balancer({files, *tracker, *mover, far.get(), latency.get(), shaper.get()},
                   options_of(config.config().tiering, published)),
          api(executor, files, balancer, config),
          server(executor, api.router()) {}

    MachineLock lock;
    std::unique_ptr<Tracker> tracker;
    std::unique_ptr<UnitMover> mover;
    std::unique_ptr<FarTier> far;
    std::unique_ptr<MemoryLatency> latency;
    std::unique_ptr<PageShaper> shaper;
    Balancer balancer;
    AgentApi api;
    http::Server server;
    std::jthread thread;  // of its own: it sleeps in windows, and move_pages(2) blocks
};

TieringService::TieringService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TieringService::~TieringService() = default;

Result<std::unique_ptr<TieringService>> TieringService::start(const boost::asio::any_io_executor& executor,
                                                              Files& files, LiveConfig& config,
                                                              const std::string& socket) {
    auto lock = MachineLock::take();
    if (!lock) return std::unexpected(std::move(lock.error()).with_context("tiering"));
    auto tracker = make_tracker(files, config.config().tiering);
    if (!tracker) return std::unexpected(std::move(tracker.error()).with_context("tiering"));
    // Beside the folder of the socket: /run/memtide/tiers, unless the configuration says otherwise.
    const auto folder = std::filesystem::path(socket).parent_path().parent_path();
    auto impl = std::make_unique<Impl>(executor, files, *std::move(lock), *std::move(tracker), config,
                                       (folder / "tiers").string());
    if (auto listening = impl->server.listen("unix:" + socket); !listening)
        return std::unexpected(std::move(listening.error()).with_context("tiering"));
    log::info("tiering starts", {{"mode", to_string(config.config().tiering.mode)},
                                 {"tracker", impl->tracker->name()},
                                 {"targets", config.config().tiering.targets.size()},
                                 {"socket", socket}});
    Balancer& balancer = impl->balancer;
    impl->thread = std::jthread([&balancer](const std::stop_token& stop) { balancer.run(stop); });
    return std::unique_ptr<TieringService>(new TieringService(std::move(impl)));
}

void TieringService::set_leaving(std::set<int> nodes) { impl_->balancer.set_leaving(std::move(nodes)); }

Result<LiveConfig::Change> TieringService::reload(std::string_view whose) { return impl_->api.reload(whose); }

boost::asio::awaitable<void> TieringService::stop() {
    impl_->thread.request_stop();
    co_await impl_->server.stop(std::chrono::seconds(1));
    impl_->thread.join();
}

}  // namespace memtide::agent
