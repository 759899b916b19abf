// fm-cycles: how many durable compose+release cycles a second the real manager does through REST, with
// emulated hosts and switches (which take no time of their own) and 256 clients, all on this machine. A cycle
// is POST that waits for Online, DELETE that waits for Released; the journal is on the disk that holds /tmp.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "common/http/client.h"
#include "tests/bench/figure.h"
#include "tests/integration/daemons.h"
#include "tests/integration/eventually.h"
#include "tests/integration/rest_client.h"

namespace memtide::bench {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using Clock = std::chrono::steady_clock;

constexpr int kClients = 256;  // each with a host of its own
constexpr int kSwitches = 16;
constexpr int kDevices = 2;  // behind each switch, 16 LDs each
constexpr int kRuns = 5;
constexpr std::chrono::seconds kRun{5};

double milliseconds_since(Clock::time_point began) {
    return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

// What all clients of a run share.
struct Run {
    Clock::time_point end;
    std::vector<double> cycle_ms;
    std::vector<double> overhead_ms;  // the manager's own share from POST to Online
    std::string failure;
};

// One client: a connection, and one cycle after the other.
class LoadClient {
  public:
    LoadClient(asio::any_io_executor executor, const std::string& url, int number, Run& run)
        : client_(std::move(executor), url), host_(fmt::format("host{}", number)), run_(run) {}

    asio::awaitable<void> work() {
        while (run_.failure.empty() && Clock::now() < run_.end) {
            const auto began = Clock::now();
            if (!co_await cycle()) co_return;
            run_.cycle_ms.push_back(milliseconds_since(began));
        }
    }

  private:
    asio::awaitable<bool> cycle() {
        http::ClientRequest compose;
        compose.method = "POST";
        compose.target = "/v1/compositions?wait=Online&timeout=25s";
        compose.headers["Content-Type"] = "application/json";
        compose.body = fmt::format(R"({{"host": "{}", "size": "256MiB"}})", host_);
        const bool online = co_await reaches(std::move(compose), "Online");
        if (!online) co_return false;
        const std::string id = test::text(answer_, "id");
        run_.overhead_ms.push_back(answer_.at("manager_overhead_ms").to_number<double>());
        http::ClientRequest release;
        release.method = "DELETE";
        release.target = fmt::format("/v1/compositions/{}?wait=Released&timeout=25s", id);
        co_return co_await reaches(std::move(release), "Released");
    }

    // Whether it was accepted and has come to that state.
    asio::awaitable<bool> reaches(http::ClientRequest request, const char* state) {
        const std::string what = request.method + " " + request.target;
        const auto answer = co_await client_.send(std::move(request));
        if (answer && answer->status == 202) {
            answer_ = json::parse(answer->body);
            if (test::text(answer_, "state") == state) co_return true;
        }
        run_.failure = what + ": " + (answer ? answer->body : answer.error().message);
        co_return false;
    }

    http::Client client_;
    std::string host_;
    Run& run_;
    json::value answer_;
};

void run_clients(const std::string& url, Run& run) {
    asio::io_context context(1);
    std::vector<std::unique_ptr<LoadClient>> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.push_back(std::make_unique<LoadClient>(context.get_executor(), url, i, run));
        asio::co_spawn(context, clients.back()->work(), asio::detached);
    }
    context.run();
}

int measure() {
    const test::TempFolder folder;
    const test::Daemon fleet = test::start_fleet(
        folder, {.hosts = kClients, .switches = kSwitches, .devices = kDevices, .options = {}});
    const test::Daemon manager = test::start_fleet_manager(folder);
    const std::string url = test::manager_url(folder);
    test::RestClient rest(url);
    if (!test::eventually([&] { return rest.get("/readyz").status == 200; })) return EXIT_FAILURE;

    std::vector<double> rates;
    std::vector<double> p99s;
    std::vector<double> overheads;
    for (int i = 0; i <= kRuns; ++i) {
        Run run;
        const auto began = Clock::now();
        run.end = began + kRun;
        run_clients(url, run);
        if (!run.failure.empty() || run.cycle_ms.empty()) {
            std::fprintf(stderr, "bench: a cycle failed: %s\n%s\n", run.failure.c_str(),
                         manager.output().c_str());
            return EXIT_FAILURE;
        }
        if (i == 0) continue;  // warms up
        rates.push_back(static_cast<double>(run.cycle_ms.size()) * 1000 / milliseconds_since(began));
        std::ranges::sort(run.cycle_ms);
        p99s.push_back(run.cycle_ms[run.cycle_ms.size() * 99 / 100]);
        overheads.insert(overheads.end(), run.overhead_ms.begin(), run.overhead_ms.end());
    }
    print_figure("fm-cycles", "cycles_per_second", "1/s", rates);
    print_figure("fm-cycles", "p99_ms", "ms", p99s);
    print_figure("fm-cycles", "manager_overhead_to_online_ms", "ms", overheads);
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace memtide::bench

int main() { return memtide::bench::measure(); }
