#include "tiering-agent/app/tiering_service.h"

#include <cstring>
#include <thread>
#include <utility>

#include <unistd.h>

#include "common/http/router.h"
#include "common/http/server.h"
#include "common/json/write.h"
#include "common/log/log.h"
#include "common/metrics/process.h"
#include "common/metrics/registry.h"
#include "tiering-agent/balance/balancer.h"
#include "tiering-agent/balance/status_json.h"

namespace memtide::agent {
namespace {

BalanceOptions options_of(const TieringConfig& config) {
    BalanceOptions options;
    options.config = config;
    options.pace.processor_share = config.processor_share;
    options.pace.processor_share_changing = config.processor_share_changing;
    options.pace.slowdown = config.slowdown;
    options.pace.slowdown_changing = config.slowdown_changing;
    options.agent_pid = ::getpid();
    return options;
}

double bytes(std::uint64_t pages) { return static_cast<double>(pages << kPageShift); }

void set_far_metrics(metrics::Registry& registry, const BalanceStatus& status) {
    const FarStatus& far = status.far;
    if (far.tier.empty()) return;
    registry.gauge("memtide_far_capacity_bytes", "Room of the far tier", {{"tier", far.tier}})
        .set(static_cast<double>(far.room.capacity.value));
    registry.gauge("memtide_far_free_bytes", "Room of the far tier that nobody uses", {{"tier", far.tier}})
        .set(static_cast<double>(far.room.free.value));
    registry.counted("memtide_far_processor_seconds_total", "Processor time of the far tier's part")
        .set(std::chrono::duration<double>(far.processor_time).count());
    for (const auto& [number, target] : far.targets) {
        if (number >= status.targets.size()) continue;
        const metrics::Labels labels{{"target", status.targets[number].name}};
        registry.gauge("memtide_far_cold_bytes", "Memory of a target that may go to the far tier", labels)
            .set(bytes(target.cold_pages));
        registry.gauge("memtide_far_bytes", "Memory of a target in the far tier", labels)
            .set(bytes(target.out_pages));
        registry.counted("memtide_far_sent_bytes_total", "Sent to the far tier", labels)
            .set(bytes(target.sent_pages));
        registry.counted("memtide_far_returned_bytes_total", "Came back from the far tier", labels)
            .set(bytes(target.returned_pages));
        registry
            .counted("memtide_far_returned_soon_bytes_total",
                     "Came back sooner than it had been untouched before", labels)
            .set(bytes(target.returned_soon_pages));
        for (const auto& [error, pages] : target.kept_pages)
            registry
                .counted("memtide_far_kept_bytes_total", "What the far tier did not take, by why not",
                         {{"target", status.targets[number].name}, {"reason", ::strerrorname_np(error)}})
                .set(bytes(pages));
    }
}

// docs/tiering.md has them all.
void set_metrics(metrics::Registry& registry, const BalanceStatus& status) {
    for (const Tier& tier : status.tiers) {
        registry.gauge("memtide_tier_capacity_bytes", "Memory of a tier", {{"tier", tier.name}})
            .set(static_cast<double>(tier.capacity.value));
        registry.gauge("memtide_tier_free_bytes", "Memory of a tier that nobody uses", {{"tier", tier.name}})
            .set(static_cast<double>(tier.free.value));
    }
    for (const auto& target : status.targets) {
        registry
            .gauge("memtide_target_processes", "Processes of a target that are watched",
                   {{"target", target.name}})
            .set(static_cast<double>(target.processes));
        for (std::size_t i = 0; i < target.pages_by_tier.size() && i < status.tiers.size(); ++i)
            registry
                .gauge("memtide_target_bytes", "Memory of a target in a tier",
                       {{"target", target.name}, {"tier", status.tiers[i].name}})
                .set(bytes(target.pages_by_tier[i]));
        registry
            .counted("memtide_target_promoted_bytes_total", "Moved to a faster tier",
                     {{"target", target.name}})
            .set(bytes(target.promoted_pages));
        registry
            .counted("memtide_target_demoted_bytes_total", "Moved to a slower tier",
                     {{"target", target.name}})
            .set(bytes(target.demoted_pages));
    }
    registry.counted("memtide_tiering_wasted_bytes_total", "Moves that undid another within a minute")
        .set(bytes(status.wasted_pages));
    for (const auto& [error, pages] : status.failed_pages)
        registry
            .counted("memtide_tiering_failed_bytes_total", "What the kernel did not move, by why not",
                     {{"reason", ::strerrorname_np(error)}})
            .set(bytes(pages));
    registry.gauge("memtide_tiering_hit_ratio", "Share of touches that fall on the fastest tier, estimated")
        .set(status.hit);
    registry.counted("memtide_tiering_rounds_total", "Windows looked at")
        .set(static_cast<double>(status.rounds));
    registry
        .counted("memtide_tiering_processor_seconds_total", "Processor time of looking, planning and moving")
        .set(std::chrono::duration<double>(status.processor_time).count());
    registry.gauge("memtide_tiering_heat_bytes", "Memory that the heat of pages takes")
        .set(static_cast<double>(status.heat_bytes));
    set_far_metrics(registry, status);
}

}  // namespace

struct TieringService::Impl {
    Impl(boost::asio::any_io_executor executor, Files& files, std::unique_ptr<Tracker> chosen,
         const TieringConfig& config)
        : tracker(std::move(chosen)),
          mover(make_unit_mover()),
          far(make_swap_tier(files)),
          balancer({files, *tracker, *mover, far.get()}, options_of(config)),
          server(std::move(executor), router) {
        metrics::add_process_metrics(registry, "memtide-tiering-agent", MEMTIDE_VERSION);
        router.add("GET", "/v1/status", [this](http::Request) -> boost::asio::awaitable<http::Response> {
            co_return http::json_response(200, memtide::json::write(to_json(balancer.status())));
        });
        router.add("GET", "/metrics", [this](http::Request) -> boost::asio::awaitable<http::Response> {
            set_metrics(registry, balancer.status());
            http::Response response;
            response.headers["Content-Type"] = "text/plain; version=0.0.4; charset=utf-8";
            response.body = registry.render();
            co_return response;
        });
    }

    std::unique_ptr<Tracker> tracker;
    std::unique_ptr<UnitMover> mover;
    std::unique_ptr<FarTier> far;
    Balancer balancer;
    metrics::Registry registry;
    http::Router router;
    http::Server server;
    std::jthread thread;  // of its own: it sleeps in windows, and move_pages(2) blocks
};

TieringService::TieringService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TieringService::~TieringService() = default;

Result<std::unique_ptr<TieringService>> TieringService::start(boost::asio::any_io_executor executor,
                                                              Files& files, const TieringConfig& config,
                                                              const std::string& socket) {
    auto tracker = make_soft_dirty_tracker(files);
    if (!tracker) return std::unexpected(std::move(tracker.error()).with_context("tiering"));
    auto impl = std::make_unique<Impl>(std::move(executor), files, *std::move(tracker), config);
    if (auto listening = impl->server.listen("unix:" + socket); !listening)
        return std::unexpected(std::move(listening.error()).with_context("tiering"));
    log::info("tiering starts", {{"mode", to_string(config.mode)},
                                 {"tracker", impl->tracker->name()},
                                 {"targets", config.targets.size()},
                                 {"socket", socket}});
    Balancer& balancer = impl->balancer;
    impl->thread = std::jthread([&balancer](const std::stop_token& stop) { balancer.run(stop); });
    return std::unique_ptr<TieringService>(new TieringService(std::move(impl)));
}

void TieringService::set_leaving(std::set<int> nodes) { impl_->balancer.set_leaving(std::move(nodes)); }

boost::asio::awaitable<void> TieringService::stop() {
    impl_->thread.request_stop();
    co_await impl_->server.stop(std::chrono::seconds(1));
    impl_->thread.join();
}

}  // namespace memtide::agent
