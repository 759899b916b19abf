// tiering-gups, tiering-zipf, tiering-uniform: how much of a load's accesses go to the fast node, and what it
// costs, when nobody moves pages, when the kernel does, when its DAMON does, and when an agent does. Each run
// has a QEMU guest of its own with two NUMA nodes; the load is memtide-tiering-load, an ordinary process.
// docs/performance.md tells how the figures are made.
//
//   bench_tiering tiering-gups                                   once with each system
//   bench_tiering tiering-gups --systems kernel,agent --runs 5 --thp on
//   bench_tiering tiering-zipf --exponent 1.2 --agent '/usr/bin/damo start --damos_action migrate_hot ...'
//   bench_tiering tiering-gups --fast 4GiB --slow 16GiB --size 16GiB --hot 1GiB      where there is KVM
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/base/bytes.h"
#include "tests/bench/figure.h"
#include "tests/bench/tiering/figures.h"
#include "tests/bench/tiering/guest.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

// How long booting, allocating and ending may take beside the load's own time.
constexpr unsigned kSpareSeconds = 120;

struct Options {
    std::string bench;
    std::vector<std::string> systems{"none", "kernel", "damon", "agent"};
    unsigned runs = 1;
    std::string thp = "off";
    std::string agent;
    std::string agent_config = MEMTIDE_AGENT_CONFIG;
    std::string fast = "384MiB";
    std::string slow = "768MiB";
    std::string size = "640MiB";
    std::string hot = "64MiB";
    double exponent = 0.99;
    unsigned keys_per_page = 4;
    bool reads = false;
    unsigned threads = 1;
    unsigned seconds = 0;
    unsigned shift_every = 60;
    unsigned companion_ms = 10;
    double detect_seconds = 1;
    std::string kernel;
    bool consent = false;
    std::string keep;
};

using Runs = std::map<std::string, std::vector<RunFigures>>;  // by system

std::vector<std::string> load_command(const Options& options) {
    std::vector<std::string> words{MEMTIDE_TIERING_LOAD,
                                   "--size",
                                   options.size,
                                   "--hot",
                                   options.hot,
                                   "--thp",
                                   options.thp,
                                   "--seconds",
                                   std::to_string(options.seconds),
                                   "--threads",
                                   std::to_string(options.threads)};
    const auto add = [&words](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
    if (options.reads) add({"--reads"});
    if (options.bench == "tiering-gups")
        add({"--pattern", "gups", "--start-slow", "--shift-every", std::to_string(options.shift_every)});
    else if (options.bench == "tiering-zipf")
        add({"--pattern", "zipf", "--exponent", fmt::format("{}", options.exponent), "--keys-per-page",
             std::to_string(options.keys_per_page)});
    else
        add({"--pattern", "uniform"});
    return words;
}

// One boot and one load. Nothing when the system cannot run here; that is said once.
Result<std::optional<RunFigures>> run_once(const Options& options, System system, unsigned number) {
    const test::TempFolder folder;
    GuestPlan plan;
    plan.companion_ms = options.companion_ms;
    plan.kernel = options.kernel;
    plan.consent = options.consent;
    const auto fast = parse_bytes(options.fast);
    const auto slow = parse_bytes(options.slow);
    if (!fast || !slow) return std::unexpected((!fast ? fast : slow).error());
    plan.fast = *fast;
    plan.slow = *slow;
    AgentCommand agent{options.agent};
    if (agent.shell.empty())
        agent.shell = fmt::format("'{}' --config '{}'", MEMTIDE_AGENT,
                                  std::filesystem::absolute(options.agent_config).string());
    const unsigned limit = options.seconds + kSpareSeconds;
    const auto output = run_in_guest(
        plan, folder.path(), guest_script(system, plan, agent, load_command(options), limit - 30), limit);
    if (!output) return std::unexpected(output.error());
    if (output->skipped) {
        std::fprintf(stderr, "%s: %s skipped: %s\n", options.bench.c_str(),
                     std::string(to_string(system)).c_str(), output->reason.c_str());
        return std::nullopt;
    }
    if (!options.keep.empty()) {
        std::filesystem::create_directories(options.keep);
        std::ofstream(fmt::format("{}/{}-{}-{}{}.jsonl", options.keep, options.bench, to_string(system),
                                  number, options.thp == "on" ? "-thp" : ""))
            << output->lines;
    }
    const auto run = parse_load_run(output->lines);
    if (!run) return std::unexpected(run.error());
    return run_figures(*run, options.detect_seconds);
}

// Prints figures of one benchmark: those of the agent by their name, others behind the name of their system.
class Printer {
  public:
    Printer(const Options& options, const Runs& runs)
        : options_(options), runs_(runs), suffix_(options.thp == "on" ? "_thp" : "") {}

    template <typename Value>
    void figure(const std::string& name, const std::string& unit, Value RunFigures::* member) const {
        for (const auto& [system, all] : runs_) {
            std::vector<double> values;
            for (const RunFigures& one : all)
                if (const std::optional<double> value = one.*member) values.push_back(*value);
            if (!values.empty()) print(system, name, unit, std::move(values), {});
        }
    }
    // The agent's (and the kernel's) median as `of` (theirs, the other's) says.
    template <typename Value>
    void compared(const std::string& name, const std::string& unit, const std::string& against,
                  Value RunFigures::* member, const std::function<double(double, double)>& of) const {
        const auto base = runs_.find(against);
        if (base == runs_.end()) return;
        const std::optional<double> other = middle(base->second, member);
        for (const auto& [system, all] : runs_) {
            const std::optional<double> own = middle(all, member);
            if (system != against && system != "none" && own && other && *other > 0)
                print(system, name, unit, {of(*own, *other)}, against);
        }
    }

  private:
    template <typename Value>
    static std::optional<double> middle(const std::vector<RunFigures>& all, Value RunFigures::* member) {
        std::vector<double> values;
        for (const RunFigures& one : all)
            if (const std::optional<double> value = one.*member) values.push_back(*value);
        return values.empty() ? std::nullopt : std::optional(median(values));
    }
    void print(const std::string& system, const std::string& name, const std::string& unit,
               std::vector<double> values, const std::string& against) const {
        print_figure(options_.bench, (system == "agent" ? "" : system + "_") + name + suffix_, unit,
                     std::move(values), against);
    }

    const Options& options_;
    const Runs& runs_;
    std::string suffix_;
};

void print_figures(const Options& options, const Runs& runs) {
    const Printer out(options, runs);
    if (options.bench != "tiering-uniform") {
        out.figure("hit_over_oracle", "ratio", &RunFigures::hit_over_oracle);
        out.figure("convergence_seconds", "s", &RunFigures::convergence_seconds);
        out.figure("recovery_seconds", "s", &RunFigures::recovery_seconds);
        out.figure("hit_after_shift", "ratio", &RunFigures::hit_after_shift);
        out.figure("regret_seconds", "s", &RunFigures::regret_seconds);
        out.compared("shift_hit_over_kernel", "ratio", "kernel", &RunFigures::hit_after_shift,
                     [](double own, double other) { return own / other; });
    }
    // What has to be copied is known for a hot set only.
    if (options.bench == "tiering-gups")
        out.figure("regret_over_unavoidable", "ratio", &RunFigures::regret_over_unavoidable);
    if (options.bench == "tiering-uniform")
        out.figure("bytes_moved_after_30s", "bytes a minute", &RunFigures::bytes_moved_after_30s);
    out.compared("slowdown", "%", "none", &RunFigures::ops_per_second,
                 [](double own, double other) { return 100 * (1 - own / other); });
    out.figure("bytes_moved", "bytes", &RunFigures::bytes_moved);
    out.figure("failed_moves", "share", &RunFigures::failed_moves);
    out.figure("wasted_moves", "share", &RunFigures::wasted_moves);
    out.figure("stall_p999_ms", "ms", &RunFigures::stall_p999_ms);
    out.figure("ops_per_second", "1/s", &RunFigures::ops_per_second);
    out.figure("agent_cpu_percent", "% of a core", &RunFigures::agent_cpu_percent);
    out.figure("agent_cpu_seconds", "s", &RunFigures::agent_cpu_seconds);
    out.figure("agent_resident_mb", "MiB", &RunFigures::agent_resident_mb);
}

// In rounds, so that systems that are compared run close to each other in time.
int measure(const Options& options) {
    Runs runs;
    std::vector<std::string> systems = options.systems;
    for (unsigned number = 0; number < options.runs; ++number) {
        for (auto name = systems.begin(); name != systems.end();) {
            const System system = *name == "kernel"  ? System::kKernel
                                  : *name == "damon" ? System::kDamon
                                  : *name == "agent" ? System::kAgent
                                                     : System::kNone;
            const auto figures = run_once(options, system, number);
            if (!figures) {
                std::fprintf(stderr, "%s: %s: %s\n", options.bench.c_str(), name->c_str(),
                             figures.error().message.c_str());
                return 1;
            }
            if (*figures) runs[*name].push_back(**figures);
            name = *figures ? name + 1 : systems.erase(name);
        }
    }
    print_figures(options, runs);
    return 0;
}

void add_options(CLI::App& app, Options& options) {
    app.add_option("BENCH", options.bench, "tiering-gups, tiering-zipf or tiering-uniform")
        ->required()
        ->check(CLI::IsMember({"tiering-gups", "tiering-zipf", "tiering-uniform"}));
    app.add_option("--systems", options.systems,
                   "Who moves pages: none,kernel,damon,agent (default: each in turn)")
        ->delimiter(',')
        ->check(CLI::IsMember({"none", "kernel", "damon", "agent"}));
    app.add_option("--runs", options.runs, "With each, 1 by default; figures are medians")
        ->check(CLI::Range(1U, 1000U));
    app.add_option("--agent", options.agent,
                   "Shell command of an agent that stays in the foreground (default: memtide-tiering-agent "
                   "with --agent-config)");
    app.add_option("--agent-config", options.agent_config, "Its config file")->check(CLI::ExistingFile);
    app.add_option("--thp", options.thp, "The load's memory in huge pages: on or off (default)")
        ->check(CLI::IsMember({"on", "off"}));
    app.add_option("--fast", options.fast,
                   "The guest's node 0, 384MiB by default; some 75MiB are the kernel's");
    app.add_option("--slow", options.slow, "Its node 1, 768MiB by default");
    app.add_option("--size", options.size, "The load's memory, 640MiB by default");
    app.add_option("--hot", options.hot, "Its hot set (gups), 64MiB by default");
    app.add_option("--seconds", options.seconds, "Of load (default: 120 for gups, else 90)")
        ->check(CLI::Range(3U, 86400U));
    app.add_option("--shift-every", options.shift_every,
                   "Seconds between jumps of the hot set (gups), 60 by default")
        ->check(CLI::Range(1U, 86400U));
    app.add_option("--exponent", options.exponent, "Of zipf, 0.99 by default");
    app.add_option("--keys-per-page", options.keys_per_page, "Of zipf, 4 by default");
    app.add_flag("--reads", options.reads, "The load only reads");
    app.add_option("--threads", options.threads, "Of the load, 1 by default");
    app.add_option(
        "--companion", options.companion_ms,
        "The guest's processors switch address spaces at least every so many ms (default 10; 0: no); "
        "without that, emulated ones hide accesses from whoever reads accessed bits");
    app.add_option(
        "--detect", options.detect_seconds,
        "Seconds that noticing a new hot set takes at best, for regret_over_unavoidable; 1 by default");
    app.add_option("--kernel", options.kernel, "The guest's, 7.3 for example (default: 6.12)");
    app.add_flag("--consent", options.consent,
                 "The load lets itself be watched (memtide agent run; --kernel 7.3)");
    app.add_option("--keep", options.keep, "Folder for what the loads print");
}

int run(int argc, char** argv) {
    CLI::App app{"Benchmarks of memory tiering, each run in a QEMU guest of its own"};
    Options options;
    add_options(app, options);
    CLI11_PARSE(app, argc, argv);
    if (options.seconds == 0) options.seconds = options.bench == "tiering-gups" ? 120 : 90;
    return measure(options);
}

}  // namespace
}  // namespace memtide::bench

int main(int argc, char** argv) { return memtide::bench::run(argc, argv); }
