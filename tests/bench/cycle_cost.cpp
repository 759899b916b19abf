#include "tests/bench/cycle_cost.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <sys/resource.h>

#include "common/metrics/registry.h"
#include "tests/bench/bound_fabric.h"
#include "tests/bench/figure.h"
#include "tests/fabric-manager/engine/rig.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {

namespace {

constexpr int kSwitches = 400;
constexpr int kClients = 32;  // each with a host of its own that has nothing else
constexpr int kCycles = 60;   // of each, in a run
constexpr int kRuns = 5;
constexpr std::chrono::milliseconds kPatience{60'000};

double processor_ms() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto ms = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
    };
    return ms(used.ru_utime) + ms(used.ru_stime);
}

fm::Composition good(const fm::Outcome<fm::Composition>& outcome, fm::CompositionState state) {
    if (!outcome) throw std::runtime_error(outcome.error().detail);
    if (outcome->state != state)
        throw std::runtime_error("a composition is " + std::string(to_string(outcome->state)));
    return *outcome;
}

boost::asio::awaitable<void> work(fm::Manager& manager, HostId host, int& running) {
    for (int i = 0; i < kCycles; ++i) {
        fm::CompositionRequest request;
        request.host = host;
        request.size = kCxlGranule;
        const auto created = co_await manager.create(std::move(request), std::nullopt);
        if (!created) throw std::runtime_error(created.error().detail);
        const CompositionId id = created->composition.id;
        const auto online = co_await manager.wait(id, fm::CompositionState::kOnline, kPatience);
        good(online, fm::CompositionState::kOnline);
        const auto releasing = co_await manager.release(id, false);
        if (!releasing) throw std::runtime_error(releasing.error().detail);
        const auto released = co_await manager.wait(id, fm::CompositionState::kReleased, kPatience);
        good(released, fm::CompositionState::kReleased);
    }
    --running;
}

// A manager beside so many compositions, and agents for the clients' hosts.
class World {
  public:
    explicit World(int bound_each) : fabric_(io_, kSwitches) {
        const std::string state = folder_.file("state.db");
        if (const Result<> ok = fabric_.bind(bound_each, state, BoundFabric::Hosts::kSecond); !ok)
            throw std::runtime_error(ok.error().message);
        auto manager = fabric_.open(io_, state, metrics_);
        if (!manager) throw std::runtime_error(manager.error().message);
        manager_ = *std::move(manager);
        manager_->start();
        // The first snapshot is not part of a cycle.
        run_until(
            [&] { return manager_->readiness().ready && std::filesystem::exists(state + ".snapshot"); });
        for (int i = 0; i < kClients; ++i) {
            auto agent = std::make_shared<fm::FakeAgent>();
            agent->host = BoundFabric::host(i, 0);
            boost::asio::co_spawn(
                io_,
                fm::follow(manager_.get(), alive_, agent, fabric_.switches()[static_cast<std::size_t>(i)]),
                boost::asio::detached);
        }
        (void)run();  // warms up
    }
    ~World() {
        *alive_ = false;
        manager_.reset();
        io_.restart();
        while (io_.poll() != 0) io_.restart();
    }

    // Milliseconds of processor time a cycle.
    double run() {
        int running = kClients;
        const double began = processor_ms();
        for (int i = 0; i < kClients; ++i)
            boost::asio::co_spawn(io_, work(*manager_, BoundFabric::host(i, 0), running),
                                  [](std::exception_ptr failure) {
                                      if (failure) std::rethrow_exception(failure);
                                  });
        run_until([&] { return running == 0; });
        return (processor_ms() - began) / (kClients * kCycles);
    }

  private:
    template <typename Condition>
    void run_until(Condition condition) {
        while (!condition()) {
            io_.restart();
            io_.run_one_for(std::chrono::milliseconds(20));
        }
    }

    boost::asio::io_context io_{1};
    test::TempFolder folder_;
    metrics::Registry metrics_;
    BoundFabric fabric_;
    std::unique_ptr<fm::Manager> manager_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

std::vector<double> costs(int bound_each) {
    World world(bound_each);
    std::vector<double> result;
    for (int i = 0; i < kRuns; ++i) result.push_back(world.run());
    std::ranges::sort(result);
    return result;
}

}  // namespace

void measure_cycle_cost() {
    const std::vector<double> few = costs(1'000 / kSwitches);
    const std::vector<double> many = costs(100'000 / kSwitches);
    print_figure("fm-scale", "cycle_cost_1k_ms", "ms", few);
    print_figure("fm-scale", "cycle_cost_100k_ms", "ms", many);
    print_figure("fm-scale", "cycle_cost_ratio_100k_to_1k", "", {many[kRuns / 2] / few[kRuns / 2]});
}

}  // namespace memtide::bench
