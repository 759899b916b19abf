// fm-fleet: 1,000 emulated hosts that wait for their manager, in the clear and with TLS and a certificate of
// each host's own: how long after the manager's start all of them have reported, and what both processes hold
// then.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "tests/bench/figure.h"
#include "tests/integration/daemons.h"
#include "tests/integration/eventually.h"
#include "tests/integration/rest_client.h"
#include "tests/integration/secured.h"

namespace memtide::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHosts = 1000;
constexpr int kSwitches = 32;
constexpr int kRuns = 3;

double resident_mb(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/statm", pid));
    std::uint64_t all = 0;
    std::uint64_t resident = 0;
    file >> all >> resident;
    return static_cast<double>(resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) / 1e6;
}

struct Figures {
    std::vector<double> seconds;
    std::vector<double> manager_mb;
    std::vector<double> fleet_mb;
};

bool measure_once(bool secured, Figures& figures) {
    const test::TempFolder folder;
    std::optional<test::Secured> certificates;
    const test::ReservedPort port;
    test::FleetOptions options{.manager = fmt::format("http://127.0.0.1:{}", port.number()),
                               .hosts = kHosts,
                               .switches = kSwitches,
                               .devices = 4,
                               .options = {}};
    if (secured) options = certificates.emplace(folder, kHosts).fleet(std::move(options));
    const test::Daemon fleet = test::start_fleet(folder, options);
    test::RestClient control(test::fleet_control(folder));
    const auto began = Clock::now();
    const test::Daemon manager = test::start_fleet_manager(folder);
    const bool reported = test::eventually([&] {
        const boost::json::value status = control.get("/v1/status").json;
        return status.is_object() && status.at("since_start").at("reports").to_number<int>() >= kHosts;
    });
    if (!reported) {
        std::fprintf(stderr, "bench: not all hosts have reported\n%s\n", manager.output().c_str());
        return false;
    }
    figures.seconds.push_back(std::chrono::duration<double>(Clock::now() - began).count());
    figures.manager_mb.push_back(resident_mb(manager.pid()));
    figures.fleet_mb.push_back(resident_mb(fleet.pid()));
    return true;
}

int measure() {
    for (const bool secured : {false, true}) {
        Figures figures;
        for (int i = 0; i < kRuns; ++i)
            if (!measure_once(secured, figures)) return EXIT_FAILURE;
        const std::string suffix = secured ? "_tls" : "";
        print_figure("fm-fleet", "all_reported_seconds" + suffix, "s", figures.seconds);
        print_figure("fm-fleet", "manager_mb" + suffix, "MB", figures.manager_mb);
        print_figure("fm-fleet", "emulator_mb" + suffix, "MB", figures.fleet_mb);
    }
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace memtide::bench

int main() { return memtide::bench::measure(); }
