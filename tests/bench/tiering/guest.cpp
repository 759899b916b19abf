#include "tests/bench/tiering/guest.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "common/process/child.h"

namespace memtide::bench {
namespace {

constexpr int kAgentEnded = 77;
constexpr std::chrono::seconds kBootLimit{180};

std::string last_line(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

// Two monitors of physical addresses (Documentation/admin-guide/mm/damon/usage.rst): what is accessed at all
// on node 1 goes to node 0, what has not been for 3 s on node 0 goes to node 1.
constexpr std::string_view kDamonSchemes = R"sh(
damon=/sys/kernel/mm/damon/admin/kdamonds
block=$((0x$(cat /sys/devices/system/memory/block_size_bytes)))
scheme() { # kdamond, node, action, to node, most accesses, least age in aggregations
    context=$damon/$1/contexts/0
    echo 1 >$damon/$1/contexts/nr_contexts && echo paddr >$context/operations && echo 1 >$context/targets/nr_targets &&
    blocks=$(ls -d /sys/devices/system/node/node$2/memory[0-9]* | sed 's/.*memory//' | sort -n) &&
    echo $(echo "$blocks" | wc -l) >$context/targets/0/regions/nr_regions || return
    i=0
    for number in $blocks; do
        echo $((number * block)) >$context/targets/0/regions/$i/start &&
        echo $(((number + 1) * block)) >$context/targets/0/regions/$i/end || return
        i=$((i + 1))
    done
    echo 1 >$context/schemes/nr_schemes && scheme=$context/schemes/0 &&
    echo $3 >$scheme/action && echo $4 >$scheme/target_nid &&
    echo 4096 >$scheme/access_pattern/sz/min && echo 18446744073709551615 >$scheme/access_pattern/sz/max &&
    echo $5 >$scheme/access_pattern/nr_accesses/max &&
    { [ $5 = 0 ] || echo 1 >$scheme/access_pattern/nr_accesses/min; } &&
    echo $6 >$scheme/access_pattern/age/min && echo 4294967295 >$scheme/access_pattern/age/max &&
    echo 1000 >$scheme/quotas/reset_interval_ms && echo 209715200 >$scheme/quotas/bytes && echo on >$damon/$1/state
}
echo 2 >$damon/nr_kdamonds && scheme 0 1 migrate_hot 0 4294967295 0 && scheme 1 0 migrate_cold 1 0 30 || exit
)sh";

// A rack of one host, down again at the end, however this program ends.
class Rack {
  public:
    Rack(const GuestPlan& plan, std::string folder) : folder_(std::move(folder)) {
        std::ofstream(topology()) << fmt::format(
            "name: tiering-bench-{}\nhosts:\n  - name: host0\n    memory: {}\n    cpus: 2\n    numa_nodes: "
            "[{{size: {}}}]\n{}",
            getpid(), format_bytes(plan.fast), format_bytes(plan.slow),
            plan.kernel.empty() ? "" : fmt::format("    kernel: \"{}\"\n", plan.kernel));
    }
    ~Rack() {
        const auto output = run("down", {}, std::chrono::seconds(60));
        if (!output)
            std::fprintf(stderr, "bench: the guest may still run: %s\n", output.error().message.c_str());
    }
    Rack(const Rack&) = delete;
    Rack& operator=(const Rack&) = delete;

    Result<> up(const GuestPlan& plan) const {
        std::vector<std::string> more{"--while", std::to_string(getpid()), "--timeout",
                                      std::to_string(kBootLimit.count() - 10)};
        if (!plan.kernel_arguments.empty()) {
            more.emplace_back("--append");
            more.push_back(fmt::format("{}", fmt::join(plan.kernel_arguments, " ")));
        }
        const auto output = run("up", more, kBootLimit);
        if (!output) return std::unexpected(output.error());
        if (output->exit.succeeded()) return {};
        return fail(ErrorCode::kUnavailable, "no guest: " + last_line(output->standard_error));
    }

    [[nodiscard]] Result<process::Output> shell(const std::string& script, std::chrono::seconds limit) const {
        return run("exec", {"-n", "-C", "/", "host0", "--", "sh", "-c", script}, limit);
    }

  private:
    [[nodiscard]] std::string topology() const { return folder_ + "/rack.yaml"; }
    [[nodiscard]] Result<process::Output> run(const std::string& verb, const std::vector<std::string>& more,
                                              std::chrono::seconds limit) const {
        process::Command command;
        command.argv = {MEMTIDE_CXL_EMUL, "rack", verb, topology(), "--run-dir", folder_ + "/run"};
        command.argv.insert(command.argv.end(), more.begin(), more.end());
        return process::run(std::move(command), limit);
    }

    std::string folder_;
};

}  // namespace

std::string why_no_guest() {
    if (geteuid() != 0) return "needs root: the guest's files are this machine's";
    const char* const cache = std::getenv("MEMTIDE_CACHE");
    const std::string guest = std::string(cache == nullptr ? "/var/cache/memtide" : cache) + "/guest/vmlinuz";
    return std::filesystem::exists(guest) ? "" : "no guest kernel in " + guest + ": run scripts/setup";
}

std::string shell_words(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) {
        out += out.empty() ? "'" : " '";
        for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
        out += '\'';
    }
    return out;
}

std::string_view to_string(System system) {
    switch (system) {
        case System::kNone:
            return "none";
        case System::kKernel:
            return "kernel";
        case System::kDamon:
            return "damon";
        case System::kDamo:
            return "damo";
        case System::kAgent:
            return "agent";
    }
    return "?";
}

// Options of damo 2.6.8 and later (its USAGE.md, "Partial DAMOS Parameters Update"). The same rates, ages and
// quotas as kDamonSchemes; goals for quotas would need Linux 6.16.
std::string damo_command() {
    constexpr std::string_view kQuota = "--damos_quota_interval 1s --damos_quota_space 200MB";
    return fmt::format(
        "sh -c '{0} start --numa_node 0 --damos_action migrate_cold 1 --damos_access_rate 0% 0% --damos_age "
        "3s max {1} --numa_node 1 --damos_action migrate_hot 0 --damos_access_rate 5% max {1} "
        "--nr_targets 1 1 --nr_schemes 1 1 --nr_ctxs 1 1 && exec sleep infinity'",
        kDamoProgram, kQuota);
}

std::string watched_load(const std::vector<std::string>& load, bool consent, unsigned limit_seconds) {
    const std::string run = consent ? shell_words({MEMTIDE_CLI, "agent", "run", "--"}) + " " : "";
    return fmt::format("timeout -k 5 {} {}{} $watch", limit_seconds, run, shell_words(load));
}

std::string guest_script_around(System system, const GuestPlan& plan, const AgentCommand& agent,
                                const std::string& load_program, const std::string& workload) {
    const bool kernel = system == System::kKernel;
    const bool has_agent = system == System::kAgent || system == System::kDamo;
    std::string script = fmt::format(
        "echo {} >/proc/sys/kernel/numa_balancing && echo {} >/sys/kernel/mm/numa/demotion_enabled &&\n"
        "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled || exit\n"
        "sync; echo 3 >/proc/sys/vm/drop_caches\n",
        kernel ? 2 : 0, kernel ? 1 : 0);
    if (plan.companion_ms > 0)
        script += fmt::format("{} --companion {} >/dev/null 2>&1 &\n", shell_words({load_program}),
                              plan.companion_ms);
    if (system == System::kDamon) script += kDamonSchemes;
    script += "watch=\n";
    if (has_agent)
        // exec: the process that is watched is the agent itself.
        script += fmt::format(
            "( exec {} ) >/run/agent.log 2>&1 &\nagent=$!\nwatch=\"--watch $agent\"\nsleep 3\n"
            "if ! kill -0 $agent 2>/dev/null; then\n"
            "    wait $agent; echo \"the agent ended with code $?: $(tail -n 1 /run/agent.log)\" >&2; exit "
            "{}\nfi\n",
            agent.shell, kAgentEnded);
    script += workload + "\ncode=$?\n";
    if (has_agent)
        script +=
            "if ! kill -0 $agent 2>/dev/null; then\n"
            "    echo \"the agent did not live to the end: $(tail -n 1 /run/agent.log)\" >&2; exit 1\nfi\n";
    return script + "exit $code\n";
}

std::string guest_script(System system, const GuestPlan& plan, const AgentCommand& agent,
                         const std::vector<std::string>& load, unsigned limit_seconds) {
    return guest_script_around(system, plan, agent, load.front(),
                               watched_load(load, plan.consent, limit_seconds));
}

Result<GuestOutput> run_in_guest(const GuestPlan& plan, const std::string& folder, const std::string& script,
                                 unsigned limit_seconds) {
    const Rack rack(plan, folder);
    if (Result<> up = rack.up(plan); !up) return std::unexpected(up.error());
    const auto output = rack.shell(script, std::chrono::seconds(limit_seconds));
    if (!output) return std::unexpected(output.error());
    if (output->exit.code == kAgentEnded)
        return GuestOutput{.skipped = true, .reason = last_line(output->standard_error), .lines = {}};
    if (!output->exit.succeeded())
        return fail(ErrorCode::kIo, fmt::format("the run in the guest {}: {}", output->exit.describe(),
                                                last_line(output->standard_error)));
    return GuestOutput{.skipped = false, .reason = {}, .lines = output->standard_output};
}

}  // namespace memtide::bench
