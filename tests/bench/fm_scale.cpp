// fm-scale: what a manager of 10,000 hosts, 2,000 devices and 100,000 logical devices takes: time for a
// placement decision, for a page of the inventory, asked for over HTTP on the loopback, and memory; and what
// a composition costs beside 1,000 and 100,000 others. The switches are in this process, and so is what they
// take.
#include <chrono>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "common/http/client.h"
#include "common/http/server.h"
#include "common/log/log.h"
#include "common/metrics/process.h"
#include "fabric-manager/rest/api.h"
#include "tests/bench/cycle_cost.h"
#include "tests/bench/figure.h"
#include "tests/bench/large_fabric.h"

namespace memtide::bench {
namespace {

constexpr const char* kBench = "fm-scale";
constexpr int kRuns = 5;
constexpr int kPages = 400;        // a run
constexpr int kDecisions = 3'000;  // a run
constexpr int kHosts = 10'000;

double percentile(std::vector<double> values, double share) {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// A page of the usual 100 items from anywhere in a list, devices (with their 5,000 LDs) as often as hosts.
std::string some_page(std::mt19937& random) {
    const auto number = static_cast<int>(random() % kHosts);
    if (random() % 2 == 0) return fmt::format("/v1/hosts?page=host{:05}", number);
    // Device names are kind and serial number: switch in bits 40 and up, port in bits 32 and up.
    return fmt::format("/v1/devices?page=mld-4d54{:02x}{:02x}00000000", number % 50 + 1, number % 256);
}

// A client that blocks; what it is answered is not parsed, since that is no work of the manager's.
class PageClient {
  public:
    explicit PageClient(const std::string& url) : client_(io_.get_executor(), url) {}

    std::size_t get(const std::string& target) {
        http::ClientRequest request;
        request.target = target;
        std::size_t size = 0;
        boost::asio::co_spawn(io_, client_.send(std::move(request)),
                              [&](const std::exception_ptr&, const Result<http::ClientResponse>& answer) {
                                  if (answer && answer->status == 200) size = answer->body.size();
                              });
        io_.restart();
        io_.run();
        if (size == 0) throw std::runtime_error(target + " failed");
        return size;
    }

  private:
    boost::asio::io_context io_{1};
    http::Client client_;
};

// Milliseconds of each page.
std::vector<double> time_pages(PageClient& client, std::mt19937& random) {
    std::vector<double> times;
    for (int i = 0; i < kPages; ++i) {
        const std::string target = some_page(random);
        const auto began = std::chrono::steady_clock::now();
        (void)client.get(target);
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
        times.push_back(took.count());
    }
    return times;
}

void measure_pages(boost::asio::io_context& io, LargeFabric& fabric) {
    const fm::RestApi api(fabric.manager(), fabric.metrics());
    http::Server server(io.get_executor(), api.router());
    if (const auto listening = server.listen("127.0.0.1:0"); !listening)
        throw std::runtime_error(listening.error().message);
    const std::string url = fmt::format("http://127.0.0.1:{}", server.port());
    std::vector<double> p99;
    std::thread client([&] {
        std::mt19937 random(4711);
        PageClient pages(url);
        (void)time_pages(pages, random);  // warms up
        for (int i = 0; i < kRuns; ++i) p99.push_back(percentile(time_pages(pages, random), 0.99));
        io.stop();
    });
    io.restart();
    io.run();
    client.join();
    print_figure(kBench, "inventory_page_p99_ms", "ms", p99);
}

// Where a composition would go: all policies in turn, for hosts from anywhere.
void measure_placement(fm::Manager& manager) {
    std::mt19937 random(4711);
    std::vector<double> p99;
    for (int run = 0; run < kRuns; ++run) {
        std::vector<double> times;
        for (int i = 0; i < kDecisions; ++i) {
            fm::CompositionRequest request;
            request.host = HostId(fmt::format("host{:05}", random() % kHosts));
            request.size = kCxlGranule * (4U << random() % 3);
            request.placement.kind = static_cast<fm::PlacementKind>(i % 3);
            if (i % 3 == 2) request.placement.ways = static_cast<std::uint8_t>(1U << random() % 3);
            const auto began = std::chrono::steady_clock::now();
            const auto plan = manager.plan(std::move(request));
            const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
            if (!plan) throw std::runtime_error("nothing is free: " + plan.error().detail);
            times.push_back(took.count());
        }
        p99.push_back(percentile(std::move(times), 0.99));
    }
    print_figure(kBench, "placement_p99_us", "us", p99);
}

void measure_fabric() {
    boost::asio::io_context io(1);
    LargeFabric fabric(io, {});
    fabric.wait_until_ready();
    measure_placement(fabric.manager());
    measure_pages(io, fabric);
    print_figure(kBench, "rss_mb", "MB", {metrics::resident_bytes(getpid()) / 1e6});
}

int run() {
    log::set_level(log::Level::kError);
    measure_fabric();
    measure_cycle_cost();
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace memtide::bench

int main() { return memtide::bench::run_bench(&memtide::bench::run); }
