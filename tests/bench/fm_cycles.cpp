// fm-cycles: how many durable compose+release cycles a second the real manager does through REST, with the
// real emulated switch (its operations take no time of their own) and fake agents, all on this machine. Every
// cycle is POST, wait for Online, DELETE, wait for Released; the journal is on the disk that holds /tmp.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/figure.h"
#include "tests/integration/background.h"
#include "tests/integration/daemons.h"
#include "tests/integration/eventually.h"
#include "tests/integration/fake_agent.h"
#include "tests/integration/rest_client.h"

namespace memtide::bench {
namespace {

constexpr int kClients = 16;  // each with a host and its agent
constexpr int kRuns = 5;
constexpr std::chrono::seconds kRun{5};

struct Measured {
    std::mutex mutex;
    std::vector<double> overhead_ms;  // the manager's own share from POST to Online
    std::atomic<int> cycles{0};
    std::atomic<bool> failed{false};
};

bool one_cycle(test::RestClient& rest, const std::string& host, Measured& measured) {
    const test::RestAnswer answer = rest.compose(host, "256MiB");
    const std::string id = test::text(answer.json, "id");
    if (answer.status != 202) return false;
    const auto online = rest.wait(id, "Online");
    if (test::text(online, "state") != "Online") return false;
    if (rest.call("DELETE", "/v1/compositions/" + id).status != 202) return false;
    if (test::text(rest.wait(id, "Released"), "state") != "Released") return false;
    const std::lock_guard lock(measured.mutex);
    measured.overhead_ms.push_back(online.at("manager_overhead_ms").to_number<double>());
    ++measured.cycles;
    return true;
}

double cycles_per_second(const std::string& url, Measured& measured) {
    const auto began = std::chrono::steady_clock::now();
    const int before = measured.cycles;
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i)
        clients.emplace_back([&, i] {
            test::RestClient rest(url);
            while (!measured.failed && std::chrono::steady_clock::now() - began < kRun)
                if (!one_cycle(rest, "host" + std::to_string(i), measured)) measured.failed = true;
        });
    for (std::thread& client : clients) client.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return (measured.cycles - before) / took.count();
}

int run() {
    const test::TempFolder folder;
    test::Background background;
    const test::Daemon fabric = test::start_switch(folder, {.hosts = kClients, .devices = 2, .lds = 16});
    const test::Daemon manager = test::start_manager(folder, {.hosts = kClients, .timing = {}, .limits = {}});
    const std::string url = test::manager_url(folder);
    std::vector<std::unique_ptr<test::FakeAgent>> agents;
    for (int i = 0; i < kClients; ++i)
        agents.push_back(
            std::make_unique<test::FakeAgent>(background.executor(), url, "host" + std::to_string(i)));
    test::RestClient rest(url);
    if (!test::eventually([&] { return rest.get("/readyz").status == 200; })) return EXIT_FAILURE;

    Measured measured;
    (void)cycles_per_second(url, measured);  // warms up
    measured.overhead_ms.clear();
    std::vector<double> rates;
    for (int i = 0; i < kRuns; ++i) rates.push_back(cycles_per_second(url, measured));
    agents.clear();
    background.stop();
    if (measured.failed || measured.overhead_ms.empty()) {
        std::fprintf(stderr, "bench: a cycle failed\n%s\n", manager.output().c_str());
        return EXIT_FAILURE;
    }
    print_figure("fm-cycles", "cycles_per_second", "1/s", rates);
    print_figure("fm-cycles", "manager_overhead_to_online_ms", "ms", measured.overhead_ms);
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace memtide::bench

int main() { return memtide::bench::run(); }
