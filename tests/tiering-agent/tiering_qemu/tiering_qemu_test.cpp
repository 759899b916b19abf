// The agent beside a load on a real kernel: a QEMU guest with two NUMA nodes. The load checks its own data,
// so that a page that came back wrong fails the run.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/bench/tiering/figures.h"
#include "tests/bench/tiering/guest.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

constexpr unsigned kLimit = 200;  // seconds of a run at most

std::vector<std::string> load(unsigned seconds, const std::vector<std::string>& more) {
    std::vector<std::string> words{MEMTIDE_TIERING_LOAD, "--seconds", std::to_string(seconds)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// 32 MiB of 320 MiB, in the slower tier at first.
std::vector<std::string> hot_set(unsigned seconds, const std::vector<std::string>& more) {
    std::vector<std::string> words =
        load(seconds, {"--pattern", "gups", "--size", "320MiB", "--hot", "32MiB", "--start-slow"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

class TieringInQemu : public testing::Test {
  protected:
    void SetUp() override {
        if (const auto reason = why_no_guest(); !reason.empty()) GTEST_SKIP() << reason;
    }
    LoadRun run(const std::string& script) {
        const auto output = run_in_guest(plan_, folder_.path(), script, kLimit);
        if (!output || output->skipped) {
            ADD_FAILURE() << (output ? output->reason : output.error().message);
            return {};
        }
        auto run = parse_load_run(output->lines);
        if (!run) ADD_FAILURE() << run.error().message << "\n" << output->lines;
        return run.value_or(LoadRun{});
    }

    GuestPlan plan_{
        .fast = mebibytes(256), .slow = mebibytes(384), .companion_ms = 0, .kernel_arguments = {}};
    test::TempFolder folder_;
    AgentCommand agent_{fmt::format("{} --config {}", MEMTIDE_AGENT, MEMTIDE_AGENT_CONFIG)};
};

TEST_F(TieringInQemu, AHotSetThatJumpsIsFollowed) {
    const LoadRun run =
        this->run(guest_script(System::kAgent, plan_, agent_, hot_set(80, {"--shift", "35"}), kLimit - 30));
    const auto phases = phase_figures(run);
    ASSERT_EQ(phases.size(), 2U);
    EXPECT_LT(phases[0].first_hit, 0.6 * phases[0].oracle);
    // More than half of the memory is fast: much of the next hot set may be up already, for being as warm as
    // the rest.
    for (const PhaseFigures& phase : phases) EXPECT_GT(phase.steady_hit, 0.8 * phase.oracle);
    EXPECT_LT(run_figures(run, 1).failed_moves, 0.05);
}

// All of them are written to within a millisecond: only their order tells.
TEST_F(TieringInQemu, HotHugePagesAreSeen) {
    const LoadRun run =
        this->run(guest_script(System::kAgent, plan_, agent_, hot_set(60, {"--thp", "on"}), kLimit - 30));
    const auto phases = phase_figures(run);
    ASSERT_EQ(phases.size(), 1U);
    EXPECT_LT(phases[0].first_hit, 0.6 * phases[0].oracle);
    EXPECT_GT(phases[0].steady_hit, 0.9 * phases[0].oracle);
}

// Each has four hot pages of 512, and more than half of them lie in the slower tier: as huge pages no more
// than a part of what is hot can be fast.
TEST_F(TieringInQemu, HotPartsOfHugePagesComeTogether) {
    agent_.shell = fmt::format("{} --config {}", MEMTIDE_AGENT, MEMTIDE_AGENT_SPLIT_CONFIG);
    const LoadRun run = this->run(
        guest_script(System::kAgent, plan_, agent_,
                     load(70, {"--thp", "on", "--pattern", "strewn", "--size", "448MiB", "--hot", "3500KiB"}),
                     kLimit - 30));
    const auto phases = phase_figures(run);
    ASSERT_EQ(phases.size(), 1U);
    EXPECT_LT(phases[0].first_hit, 0.6 * phases[0].oracle);
    EXPECT_GT(phases[0].steady_hit, 0.8 * phases[0].oracle);
}

// Only reads: no write tells what is hot.
TEST_F(TieringInQemu, AHotSetThatIsOnlyReadIsSeen) {
    plan_.companion_ms = 10;  // an emulated processor has to forget its TLB for accessed bits to tell
    const LoadRun run =
        this->run(guest_script(System::kAgent, plan_, agent_, hot_set(80, {"--reads"}), kLimit - 30));
    const auto phases = phase_figures(run);
    ASSERT_EQ(phases.size(), 1U);
    EXPECT_LT(phases[0].first_hit, 0.6 * phases[0].oracle);
    EXPECT_GT(phases[0].steady_hit, 0.8 * phases[0].oracle);
}

// One agent a machine; what a killed one leaves of the kernel's monitor is turned off within moments, and
// somebody else's is left alone.
TEST_F(TieringInQemu, OneAgentAMachineAndItsMonitorsEndWithIt) {
    const std::string script =
        "cd /sys/kernel/mm/damon/admin/kdamonds\n"
        "on() { cat */state 2>/dev/null | grep -c on; }\n"
        "fail() { echo \"$1\" >&2; cat /run/agent*.log >&2; exit 1; }\n"
        "wait_for() { for i in $(seq 300); do eval \"$1\" && return 0; sleep 0.1; done; fail \"never: $1\"; "
        "}\n"
        "printf 'tiering:\\n  mode: move\\n  tracker: damon\\nstate: /run/other\\n' >/run/other.yaml\n"
        "printf 'tiering:\\n  mode: move\\n  tracker: damon\\n' >/run/one.yaml\n" +
        fmt::format("agent='{}'\n{} --size 128MiB --seconds 100 >/dev/null &\nload=$!\n", MEMTIDE_AGENT,
                    MEMTIDE_TIERING_LOAD) +
        "$agent --config /run/one.yaml >/run/agent.log 2>&1 &\none=$!\n"
        "wait_for '[ $(on) -ge 1 ]'\n"
        "$agent --config /run/other.yaml 2>/run/agent2.log && fail 'two agents'\n"
        "grep -q \"another tiering agent.*pid $one\" /run/agent2.log || fail 'does not say who'\n"
        "wait_for '[ $(on) -ge 1 ]'; kill -9 $one; wait $one\n"
        "wait_for '[ $(on) -eq 0 ]'\n"
        "$agent --config /run/one.yaml >/run/agent.log 2>&1 & one=$!\n"
        "wait_for '[ $(on) -ge 1 ]'; kill $one; wait $one || fail 'does not end well'\n"
        "[ $(cat nr_kdamonds) = 0 ] || fail 'leaves monitors behind'\n"
        "echo 1 >nr_kdamonds; echo 1 >0/contexts/nr_contexts; echo vaddr >0/contexts/0/operations\n"
        "echo 1 >0/contexts/0/targets/nr_targets; echo $load >0/contexts/0/targets/0/pid_target\n"
        "echo on >0/state || fail 'no monitor of its own'\n"
        "$agent --config /run/one.yaml 2>/run/agent2.log && fail 'takes what is not its own'\n"
        "grep -q 'somebody else uses DAMON (kdamond 0)' /run/agent2.log || fail 'does not say that'\n"
        "[ \"$(cat 0/state)\" = on ] || fail 'turned off what was not its own'\n"
        "kill $load; echo fine\n";
    const auto output = run_in_guest(plan_, folder_.path(), script, kLimit);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->lines, "fine\n");
}

// Every question that people ask, and a configuration that is read again: the good one, and not the bad one.
TEST_F(TieringInQemu, ItAnswersPeopleAndReadsItsConfigurationAgain) {
    const std::string script =
        "fail() { echo \"$1\" >&2; cat /run/answer /run/agent.log >&2; exit 1; }\n"
        "wait_for() { for i in $(seq 300); do eval \"$1\" && return 0; sleep 0.1; done; fail \"never: $1\"; "
        "}\n"
        "ask() { $memtide agent \"$@\" >/run/answer 2>&1 || fail \"agent $*\"; }\n"
        "says() { grep -q -- \"$1\" /run/answer || fail \"does not say $1\"; }\n"
        "status() { curl -s --unix-socket /run/memtide/tiering-agent/agent.sock http://agent/v1/status; }\n"
        "mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null\n"
        "echo y >/sys/kernel/mm/lru_gen/enabled\n"
        "echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p /sys/fs/cgroup/load\n"
        "printf 'tiering:\\n  mode: move\\n  processor_share: 20%%\\n' >/run/agent.yaml\n" +
        fmt::format(
            "memtide={}\n{} --config /run/agent.yaml >/run/agent.log 2>&1 &\nagent=$!\n"
            "( echo 0 >/sys/fs/cgroup/load/cgroup.procs; exec {} --size 128MiB --seconds 100 "
            ">/dev/null ) &\nload=$!\n",
            MEMTIDE_CLI, MEMTIDE_AGENT, MEMTIDE_TIERING_LOAD) +
        "wait_for 'status | grep -q \"\\\"processes\\\":1\"'\n"
        "wait_for '$memtide agent wss 2>/dev/null | grep -q memtide-tiering'\n"
        "ask status; says 'move'; ask plan; says 'would move'; ask heat; ask top; ask heat --svg "
        "/run/heat.svg\n"
        "grep -q '<svg' /run/heat.svg || fail 'no picture'\n"
        "ask generations --begin; ask generations; says '^/load'\n"
        "page=$(awk '/rw-p/ && /heap|^7f/ {split($1, a, \"-\"); print a[1]; exit}' /proc/$load/maps)\n"
        "ask explain $load $page; says 'page'; says 'verdict\\|it stays\\|next exchange\\|windows'\n"
        "printf 'tiering:\\n  mode: mvoe\\n' >/run/agent.yaml; kill -HUP $agent\n"
        "wait_for 'status | grep -q mvoe'\n"
        "$memtide agent reload >/run/answer 2>&1 && fail 'takes nonsense'; says 'agent.yaml:2'\n"
        "status | grep -q '\"mode\":\"move\"' || fail 'not the one of before'\n"
        "printf 'tiering:\\n  mode: observe\\n' >/run/agent.yaml; kill -HUP $agent\n"
        "wait_for 'status | grep -q \"\\\"mode\\\":\\\"observe\\\"\"'\n"
        "kill $load; kill $agent; wait $agent || fail 'does not end well'; echo fine\n";
    const auto output = run_in_guest(plan_, folder_.path(), script, kLimit);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->lines, "fine\n");
}

// Killed at any instant it leaves a workload as it was, and goes on from nothing.
TEST_F(TieringInQemu, KilledAgainAndAgainItLosesNothing) {
    // Up to three seconds at any time, else as soon as pages move: it is amid them then, however slow the
    // machine.
    const std::string killer =
        "moved() { awk '/^pgmigrate_success/ {print $2}' /proc/vmstat; }\n"
        "( while :; do " +
        agent_.shell +
        " >/run/agent.log 2>&1 & agent=$!\n"
        "d=$(od -An -N1 -tu1 /dev/urandom); before=$(moved)\n"
        "if [ $((d % 2)) = 0 ]; then sleep $((d % 3)).$((d % 10)); else for i in $(seq 200); do sleep 0.1; "
        "[ $(moved) -gt $before ] && break; done; fi\n"
        "kill -9 $agent; wait $agent; echo k >>/run/kills; done ) 2>/dev/null &\nkiller=$!\n";
    const std::string check = "kill -9 $killer\n[ $(wc -l </run/kills) -ge 5 ] || exit 99\n";
    std::string script = killer + guest_script(System::kNone, plan_, {}, hot_set(80, {}), kLimit - 30);
    script.insert(script.rfind("exit $code"), check);
    const LoadRun run = this->run(script);
    ASSERT_GE(run.samples.size(), 10U);
    EXPECT_GT(run.samples.back().moved_pages, 0U) << "it lived long enough to move something";
}

// With Linux 7.3, which can protect pages from reads.
class RwpInQemu : public TieringInQemu {
  protected:
    void SetUp() override {
        TieringInQemu::SetUp();
        if (IsSkipped()) return;
        const char* const cache = std::getenv("MEMTIDE_CACHE");
        const std::string kernel =
            std::string(cache == nullptr ? "/var/cache/memtide" : cache) + "/guest-7.3/vmlinuz";
        if (!std::filesystem::exists(kernel))
            GTEST_SKIP() << "no guest kernel in " << kernel << ": scripts/setup has it where the mirror has";
        plan_.kernel = "7.3";
    }
};

// The oracle, as near as it gets; and when the agent is killed, the load does not even slow down, and the
// next agent finds the consent where it was.
TEST_F(RwpInQemu, WhoConsentsIsSeenToReadAndOutlivesTheAgent) {
    plan_.consent = true;
    const std::string agents = fmt::format(
        "( {0} >/run/agent.log 2>&1 & one=$!\n"
        "sleep 35; kill -9 $one; wait $one; {0} >/run/agent2.log 2>&1 ) 2>/dev/null &\nsleep 3\n",
        agent_.shell);
    const std::string check =
        "grep -q 'lets itself be watched by userfaultfd' /run/agent.log || exit 98\n"
        "grep -q 'lets itself be watched by userfaultfd' /run/agent2.log || exit 99\n";
    std::string script =
        agents + guest_script(System::kNone, plan_, {}, hot_set(50, {"--reads"}), kLimit - 30);
    script.insert(script.rfind("exit $code"), check);
    const auto phases = phase_figures(run(script));
    ASSERT_EQ(phases.size(), 1U);
    EXPECT_LT(phases[0].first_hit, 0.6 * phases[0].oracle);
    EXPECT_GT(phases[0].steady_hit, 0.95 * phases[0].oracle);
}

// The unit tests of what only this kernel has; none of them may be skipped.
TEST_F(RwpInQemu, TheTrackerDoesAsItsTestsSay) {
    const std::string script = fmt::format(
        "{} --gtest_filter='Rwp*' >/run/out 2>&1 || {{ cat /run/out >&2; exit 1; }}\n"
        "grep -q SKIPPED /run/out && {{ cat /run/out >&2; exit 1; }}\necho fine\n",
        MEMTIDE_TRACK_TEST);
    const auto output = run_in_guest(plan_, folder_.path(), script, kLimit);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->lines, "fine\n");
}

// As nobody, who may not ask the agent anything: which tiers there are is for everybody to read.
TEST_F(TieringInQemu, HeapsAreWhereTheySayAndHintsAreObeyed) {
    const std::string script = fmt::format(
        "echo 0 >/proc/sys/kernel/numa_balancing; echo 0 >/sys/kernel/mm/numa/demotion_enabled\n"
        "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled\n"
        "sync; echo 3 >/proc/sys/vm/drop_caches\n"
        "( exec {} ) >/run/agent.log 2>&1 &\n"
        "for i in $(seq 60); do [ -s /run/memtide/tiers ] && break; sleep 1; done\n"
        "cat /run/memtide/tiers\n"
        "timeout -k 5 {} setpriv --reuid 65534 --regid 65534 --clear-groups {} ||\n"
        "    {{ echo ended with $?; tail -n 5 /run/agent.log; }}\n",
        agent_.shell, kLimit - 30, MEMTIDE_HEAP_PROBE);
    const GuestPlan plan{
        .fast = mebibytes(512), .slow = mebibytes(384), .companion_ms = 0, .kernel_arguments = {}};
    const auto output = run_in_guest(plan, folder_.path(), script, kLimit);
    ASSERT_TRUE(output.has_value()) << output.error().message;
    EXPECT_NE(output->lines.find("fast 0\nslow 1\n"), std::string::npos) << output->lines;
    EXPECT_NE(output->lines.find("all is as it should be"), std::string::npos) << output->lines;
}

}  // namespace
}  // namespace memtide::bench
