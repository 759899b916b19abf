// fm-longpoll: what 10,000 agents in long poll cost the real manager: memory for each, whether that grows
// over 100,000 further polls, and the CPU it takes while nothing happens. The switches do not answer, so that
// the manager has nothing else to do.
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>

#include "common/metrics/process.h"
#include "tests/bench/figure.h"
#include "tests/bench/polling_agents.h"
#include "tests/integration/daemons.h"
#include "tests/integration/eventually.h"

namespace memtide::bench {
namespace {

constexpr const char* kBench = "fm-longpoll";
constexpr int kAgents = 10'000;
constexpr int kHostsPerSwitch = 200;
constexpr int kFurtherPolls = 10;  // of each agent
constexpr std::chrono::seconds kFirstWait{60};
constexpr std::chrono::seconds kShortWait{15};
constexpr std::chrono::seconds kIdle{20};

// Manager and agents have a descriptor for each connection.
void raise_file_limit() {
    constexpr rlim_t kNeeded = kAgents + 1000;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_max = std::max(limit.rlim_max, kNeeded);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        throw std::runtime_error(fmt::format("cannot open {} files: raise `ulimit -Hn`", kNeeded));
}

std::string configuration(const test::TempFolder& folder) {
    std::string text = fmt::format(
        "listen: 127.0.0.1:0\nstate: {}\nlimits: {{connections: {}, idle_timeout: 600s}}\n"
        "timing: {{retry_max: 600s}}\nlog_level: error\nswitches:\n",
        folder.file("state.db"), kAgents + 100);
    for (int i = 0; i < kAgents / kHostsPerSwitch; ++i)
        text += fmt::format("  - {{name: switch{}, address: \"unix://{}\"}}\n", i,
                            folder.file(fmt::format("no-switch{}", i)));
    text += "hosts:\n";
    for (int i = 0; i < kAgents; ++i)
        text += fmt::format("  - {{name: host{:05}, attach: [{{switch: switch{}, vcs: {}}}]}}\n", i,
                            i / kHostsPerSwitch, i % kHostsPerSwitch);
    return text;
}

// Memory once it has come to rest.
double settled_bytes(int pid) {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    return metrics::resident_bytes(pid);
}

int run() {
    raise_file_limit();
    const test::TempFolder folder;
    const std::string file = folder.file("manager.yaml");
    test::write_file(file, configuration(folder));
    test::Daemon manager({MEMTIDE_FABRIC_MANAGER, "--config", file}, folder.file("manager.out"),
                         "listening on");
    const double before = settled_bytes(manager.pid());

    PollingAgents agents(kAgents, test::tcp_port(manager));
    agents.ask();
    agents.start_waiting(kFirstWait);
    const double waiting = settled_bytes(manager.pid());
    print_figure(kBench, "bytes_per_idle_agent", "B", {(waiting - before) / kAgents});

    const double cpu_before = metrics::cpu_seconds(manager.pid());
    std::this_thread::sleep_for(kIdle);
    const double used = metrics::cpu_seconds(manager.pid()) - cpu_before;
    print_figure(kBench, "idle_cpu_percent", "%", {100 * used / static_cast<double>(kIdle.count())});

    // The first answer ends the wait above; each of the others is a whole poll. Growth counts from where
    // every agent has polled once, so that what a process allocates only once is not taken for it.
    agents.await_answers(2, std::chrono::milliseconds(1000));
    agents.start_waiting(kShortWait);
    const double polled_once = settled_bytes(manager.pid());
    agents.await_answers(1 + kFurtherPolls, std::chrono::milliseconds(1000));
    agents.start_waiting(kFirstWait);
    const double later = settled_bytes(manager.pid());
    print_figure(kBench, "growth_bytes_per_agent", "B", {(later - polled_once) / kAgents});
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace memtide::bench

int main() { return memtide::bench::run_bench(&memtide::bench::run); }
