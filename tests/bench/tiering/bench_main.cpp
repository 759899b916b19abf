// tiering-gups, tiering-zipf, ...: how much of a load's accesses go to the fast node, and what it costs, when
// nobody moves pages, when the kernel does, when its DAMON does, and when an agent does; tiering-kill: what
// becomes of a load whose agent is killed again and again. Each run has a QEMU guest of its own with two NUMA
// nodes; loads are ordinary processes. docs/performance.md tells how the figures are made.
//
//   bench_tiering tiering-gups                                   once with each system
//   bench_tiering tiering-gups --systems kernel,agent --runs 5 --save runs.jsonl --thp on
//   bench_tiering tiering-zipf --exponent 1.2 --ratio 1:4
//   bench_tiering tiering-kill --kills 1000
//   bench_tiering tiering-gups --fast 4GiB --slow 16GiB --size 16GiB --hot 1GiB      where there is KVM
#include <algorithm>
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

#include "tests/bench/figure.h"
#include "tests/bench/tiering/guest.h"
#include "tests/bench/tiering/runs.h"
#include "tests/bench/tiering/workload.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

// How long booting, allocating and ending may take beside the load's own time.
constexpr unsigned kSpareSeconds = 180;
constexpr const char* kRedisServer = "/usr/bin/redis-server";

struct Options {
    Workload workload;
    std::vector<std::string> systems;
    unsigned runs = 1;
    std::string agent;
    std::string agent_config;
    std::string save;
    std::string keep;
};

using Runs = std::map<std::string, std::vector<Figures>>;  // by system

System system_of(const std::string& name) {
    for (const System system :
         {System::kNone, System::kKernel, System::kDamon, System::kDamo, System::kAgent})
        if (name == to_string(system)) return system;
    return System::kNone;
}

// Why a system cannot take part on this machine, or nothing.
std::string why_not(const Options& options, System system) {
    if (system == System::kDamo && !std::filesystem::exists(kDamoProgram))
        return fmt::format("{} is not installed (pip install damo, or a distribution's package)",
                           kDamoProgram);
    if (options.workload.bench == "tiering-redis" && !std::filesystem::exists(kRedisServer))
        return fmt::format("{} is not installed (apt-get install redis-server)", kRedisServer);
    return {};
}

AgentCommand agent_command(const Options& options, System system) {
    if (system == System::kDamo) return {damo_command()};
    if (!options.agent.empty()) return {options.agent};
    return {fmt::format("'{}' --config '{}'", MEMTIDE_AGENT,
                        std::filesystem::absolute(options.agent_config).string())};
}

unsigned limit_seconds(const Workload& workload) {
    // A life takes 0.75 s on average, each tenth waits for its first window.
    if (workload.bench == "tiering-kill") return 2 * kSpareSeconds + workload.kills * 3;
    // Half a million records are stored and looked for, at some 3,000 a second on an emulated processor.
    if (workload.bench == "tiering-redis") return workload.seconds + 5 * kSpareSeconds;
    return workload.seconds + kSpareSeconds;
}

void skipped(const Options& options, System system, const std::string& reason) {
    std::fprintf(stderr, "%s: %s skipped: %s\n", options.workload.bench.c_str(),
                 std::string(to_string(system)).c_str(), reason.c_str());
}

// One boot and one load. Nothing when the system cannot run here; that is said once.
Result<std::optional<Figures>> run_once(const Options& options, System system, unsigned number) {
    const Workload& workload = options.workload;
    if (const std::string reason = why_not(options, system); !reason.empty()) {
        skipped(options, system, reason);
        return std::nullopt;
    }
    const auto plan = guest_plan(workload);
    if (!plan) return std::unexpected(plan.error());
    const AgentCommand agent = agent_command(options, system);
    const Programs programs{MEMTIDE_TIERING_LOAD, MEMTIDE_TIERING_KILLER, MEMTIDE_TIERING_REDIS};
    const unsigned limit = limit_seconds(workload);
    const auto script = workload_script(workload, programs, agent, limit - 30);
    if (!script) return std::unexpected(script.error());
    // The killer starts the agent itself.
    const System started = workload.bench == "tiering-kill" ? System::kNone : system;
    const test::TempFolder folder;
    const auto output = run_in_guest(
        *plan, folder.path(), guest_script_around(started, *plan, agent, programs.load, *script), limit);
    if (!output) return std::unexpected(output.error());
    if (output->skipped) {
        skipped(options, system, output->reason);
        return std::nullopt;
    }
    if (!options.keep.empty()) {
        std::filesystem::create_directories(options.keep);
        std::ofstream(fmt::format("{}/{}-{}-{}{}.jsonl", options.keep, workload.bench, to_string(system),
                                  number, workload.thp == "on" ? "-thp" : ""))
            << output->lines;
    }
    const auto figures = read_figures(workload, output->lines);
    if (!figures) return std::unexpected(figures.error());
    return *figures;
}

// Prints figures of one benchmark: those of the agent by their name, others behind the name of their system.
class Printer {
  public:
    Printer(const Workload& workload, const Runs& runs) : workload_(workload), runs_(runs) {
        if (workload.thp == "on") suffix_ += "_thp";
        if (workload.reads) suffix_ += "_reads";
        if (workload.consent) suffix_ += "_consent";
        if (!workload.ratio.empty()) suffix_ += "_1to" + workload.ratio.substr(2);
        if (workload.exponent != Workload().exponent)
            suffix_ += fmt::format("_exponent{}", workload.exponent);
        if (!workload.kernel.empty()) suffix_ += "_linux" + workload.kernel;
        if (workload.seconds != default_seconds(workload.bench))
            suffix_ += fmt::format("_{}s", workload.seconds);
        if (workload.bench == "tiering-redis") suffix_ += "_" + workload.ycsb;
    }

    void print_all() const {
        for (const FigureRow& row : figure_rows())
            for (const auto& [system, all] : runs_) {
                for (const std::string& name : names_of(all, row))
                    print(system, name, row, values_of(all, name));
            }
        compared("shift_hit_over_kernel", "ratio", "kernel", "hit_after_shift",
                 [](double own, double other) { return own / other; });
        compared("slowdown", "%", "none", "ops_per_second",
                 [](double own, double other) { return 100 * (1 - own / other); });
    }

  private:
    static std::vector<double> values_of(const std::vector<Figures>& all, const std::string& name) {
        std::vector<double> values;
        for (const Figures& one : all)
            if (const auto found = one.find(name); found != one.end()) values.push_back(found->second);
        return values;
    }
    // All names in any of the runs that are of that row.
    static std::vector<std::string> names_of(const std::vector<Figures>& all, const FigureRow& row) {
        std::vector<std::string> names;
        for (const Figures& one : all)
            for (const auto& [name, value] : one)
                if (row_of(name) == &row && std::ranges::find(names, name) == names.end())
                    names.push_back(name);
        return names;
    }
    // Medians of others as `of` (theirs, that of `against`) says.
    void compared(const std::string& name, const std::string& unit, const std::string& against,
                  const std::string& figure, const std::function<double(double, double)>& of) const {
        const auto base = runs_.find(against);
        if (base == runs_.end()) return;
        const auto others = values_of(base->second, figure);
        if (others.empty() || median(others) <= 0) return;
        for (const auto& [system, all] : runs_) {
            const auto own = values_of(all, figure);
            if (system != against && system != "none" && !own.empty())
                print_figure(workload_.bench, name_of(system, name), unit, {of(median(own), median(others))},
                             against);
        }
    }
    [[nodiscard]] std::string name_of(const std::string& system, const std::string& name) const {
        return (system == "agent" ? "" : system + "_") + name + suffix_;
    }
    void print(const std::string& system, const std::string& name, const FigureRow& row,
               std::vector<double> values) const {
        print_figure(workload_.bench, name_of(system, name), std::string(row.unit), std::move(values));
    }

    const Workload& workload_;
    const Runs& runs_;
    std::string suffix_;
};

// In rounds, so that systems that are compared run close to each other in time.
Result<Runs> measure(const Options& options, SavedRuns& saved) {
    // Another agent's runs, or those with another configuration, are other runs.
    const std::string agent = options.agent.empty()
                                  ? std::filesystem::path(options.agent_config).filename().string()
                                  : options.agent;
    Runs runs;
    std::vector<std::string> systems = options.systems;
    for (unsigned number = 0; number < options.runs; ++number) {
        for (auto name = systems.begin(); name != systems.end();) {
            const System system = system_of(*name);
            const std::string settings =
                settings_text(options.workload) + (system == System::kAgent ? " agent=" + agent : "");
            if (const Figures* const done = saved.find(options.workload.bench, *name, settings, number)) {
                runs[*name].push_back(*done);
                ++name;
                continue;
            }
            const auto figures = run_once(options, system, number);
            if (!figures) return fail(figures.error().code, *name + ": " + figures.error().message);
            if (!*figures) {
                name = systems.erase(name);
                continue;
            }
            runs[*name].push_back(**figures);
            if (auto kept = saved.add({options.workload.bench, *name, settings, number, **figures}); !kept)
                return std::unexpected(kept.error());
            ++name;
        }
    }
    return runs;
}

void add_workload_options(CLI::App& app, Workload& workload) {
    app.add_option("BENCH", workload.bench, fmt::format("{}", fmt::join(benches(), ", ")))
        ->required()
        ->check(CLI::IsMember(benches()));
    app.add_option("--thp", workload.thp, "The load's memory in huge pages: on or off (default)")
        ->check(CLI::IsMember({"on", "off"}));
    app.add_option("--fast", workload.fast,
                   "The guest's node 0, 384MiB by default; some 75MiB are the kernel's");
    app.add_option("--slow", workload.slow, "Its node 1, 768MiB by default");
    app.add_option("--ratio", workload.ratio,
                   "Fast to slow memory for the load, in place of --fast and --slow: 1:1 to 1:64");
    app.add_option("--kernel", workload.kernel, "The guest's kernel, as in a rack's topology: 7.3");
    app.add_option("--size", workload.size, "The load's memory, 640MiB by default");
    app.add_option("--hot", workload.hot,
                   "Its hot set (gups, scan, phases, strewn), 64MiB or, strewn, 4MiB by default");
    app.add_option("--seconds", workload.seconds, "Of load (default: by benchmark, 90 to 180)")
        ->check(CLI::Range(3U, 86400U));
    app.add_option("--shift-every", workload.shift_every,
                   "Seconds between changes of what is hot (default: 60 for gups and scan, 30 for phases)")
        ->check(CLI::Range(1U, 86400U));
    app.add_option("--exponent", workload.exponent, "Of zipf, btree and redis, 0.99 by default");
    app.add_option("--keys-per-page", workload.keys_per_page, "Of zipf, 4 by default");
    app.add_flag("--reads", workload.reads, "The load only reads");
    app.add_flag("--consent", workload.consent,
                 "The load lets itself be watched (memtide agent run; --kernel 7.3)");
    app.add_option("--threads", workload.threads, "Of the load, 1 by default");
    app.add_option("--kills", workload.kills, "Of tiering-kill, 100 by default")
        ->check(CLI::Range(1U, 100'000U));
    app.add_option("--ycsb", workload.ycsb,
                   "Of redis: A (half updates), B (5 % updates, default) or C (reads only)")
        ->check(CLI::IsMember({"A", "B", "C"}));
    app.add_option(
        "--companion", workload.companion_ms,
        "The guest's processors switch address spaces at least every so many ms (default 10; 0: no); "
        "without that, emulated ones hide accesses from whoever reads accessed bits");
    app.add_option(
        "--detect", workload.detect_seconds,
        "Seconds that noticing a new hot set takes at best, for regret_over_unavoidable; 1 by default");
}

void add_options(CLI::App& app, Options& options) {
    add_workload_options(app, options.workload);
    app.add_option("--systems", options.systems,
                   "Who moves pages: none,kernel,damon,damo,agent (default: each but damo in turn; the agent "
                   "alone in tiering-kill)")
        ->delimiter(',')
        ->check(CLI::IsMember({"none", "kernel", "damon", "damo", "agent"}));
    app.add_option("--runs", options.runs, "With each, 1 by default; figures are medians, with min and max")
        ->check(CLI::Range(1U, 1000U))
        ->take_last();  // scripts/bench adds one
    app.add_option("--save", options.save,
                   "File that gets a line for each run; runs that are there are not made again");
    app.add_option("--agent", options.agent,
                   "Shell command of an agent that stays in the foreground (default: memtide-tiering-agent "
                   "with --agent-config)");
    app.add_option("--agent-config", options.agent_config, "Its config file")->check(CLI::ExistingFile);
    app.add_option("--keep", options.keep, "Folder for what the loads print");
}

int run(int argc, char** argv) {
    CLI::App app{"Benchmarks of memory tiering, each run in a QEMU guest of its own"};
    Options options;
    add_options(app, options);
    CLI11_PARSE(app, argc, argv);
    Workload& workload = options.workload;
    if (workload.seconds == 0) workload.seconds = default_seconds(workload.bench);
    if (workload.hot.empty()) workload.hot = default_hot(workload.bench);
    if (workload.shift_every == 0) workload.shift_every = default_shift(workload.bench);
    if (options.agent_config.empty())
        options.agent_config =
            workload.bench == "tiering-several" ? MEMTIDE_SEVERAL_CONFIG : MEMTIDE_AGENT_CONFIG;
    if (workload.bench == "tiering-kill") options.systems = {"agent"};
    if (options.systems.empty()) options.systems = {"none", "kernel", "damon", "agent"};

    auto saved = options.save.empty() ? Result<SavedRuns>(SavedRuns()) : SavedRuns::open(options.save);
    const auto runs = saved ? measure(options, *saved) : std::unexpected(saved.error());
    if (!runs) {
        std::fprintf(stderr, "%s: %s\n", workload.bench.c_str(), runs.error().message.c_str());
        return 1;
    }
    Printer(workload, *runs).print_all();
    return 0;
}

}  // namespace
}  // namespace memtide::bench

int main(int argc, char** argv) { return memtide::bench::run(argc, argv); }
