// The far tier on a real kernel: a QEMU guest with swap on zram. The load checks its own data: every page has
// to come back as it was, with each update that was made.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/bench/tiering/figures.h"
#include "tests/bench/tiering/guest.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

constexpr unsigned kFarLimit = 260;  // seconds of a run at most
constexpr std::uint64_t kCold = 160ULL << 20;

// What one run said: the load, and beside it every 10 s the agent's status and what of the load is in swap.
struct FarRun {
    LoadRun load;
    std::vector<boost::json::value> statuses;
    std::vector<std::uint64_t> swapped;  // bytes
    std::vector<long> lives;             // of agents that were killed: KiB that went to swap in each
};

class FarInQemu : public testing::Test {
  protected:
    void SetUp() override {
        if (const auto reason = why_no_guest(); !reason.empty()) GTEST_SKIP() << reason;
    }

    // A load of 256 MiB of which 96 MiB are used, in a cgroup of its own, beside `agent` (shell text that
    // leaves its pid in $agent), with so much swap.
    static std::string script(const std::string& agent, const std::string& swap, unsigned seconds,
                              const std::string& more_load) {
        return fmt::format(
            "echo 0 >/proc/sys/kernel/numa_balancing; echo 0 >/sys/kernel/mm/numa/demotion_enabled\n"
            "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled\n"
            "echo 0 >/proc/sys/vm/swappiness\n"  // what goes to swap is the agent's doing
            "modprobe zram && echo {swap} >/sys/block/zram0/disksize && mkswap /dev/zram0 >/dev/null && "
            "swapon /dev/zram0 || exit\n"
            "echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir -p /sys/fs/cgroup/load\n"
            "{agent}\n"
            "( echo 0 >/sys/fs/cgroup/load/cgroup.procs; exec timeout -k 5 {limit} {load} --pattern gups "
            "--size 256MiB --hot 96MiB --hot-share 1 --seconds {seconds} {more} ) & load=$!\n"
            "while sleep 10 && kill -0 $load 2>/dev/null; do\n"
            "    echo \"STATUS $(curl -s -m 5 --unix-socket /run/memtide/tiering-agent/agent.sock "
            "http://agent/v1/status)\"\n"
            "    echo \"SWAPPED $(awk '/^VmSwap/ {{print $2}}' /proc/$(pgrep -P $load)/status)\"\n"
            "done\n"
            "wait $load; code=$?\n"
            "[ $code = 0 ] || tail -n 5 /run/agent.log >&2\n"
            "exit $code\n",
            fmt::arg("swap", swap), fmt::arg("agent", agent), fmt::arg("limit", kFarLimit - 40),
            fmt::arg("load", MEMTIDE_TIERING_LOAD), fmt::arg("seconds", seconds),
            fmt::arg("more", more_load));
    }
    static std::string agent() {
        return fmt::format("( exec {} --config {} ) >/run/agent.log 2>&1 &\nagent=$!", MEMTIDE_AGENT,
                           MEMTIDE_FAR_CONFIG);
    }

    FarRun run(const std::string& script) {
        FarRun result;
        const auto output = run_in_guest(plan_, folder_.path(), script, kFarLimit);
        if (!output) {
            ADD_FAILURE() << output.error().message;
            return result;
        }
        std::string lines;
        std::string_view rest = output->lines;
        while (!rest.empty()) {
            const std::string_view line = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(std::min(rest.size(), line.size() + 1));
            constexpr std::string_view kStatus = "STATUS ";
            constexpr std::string_view kSwapped = "SWAPPED ";
            constexpr std::string_view kKilled = "KILLED ";
            if (line.starts_with(kStatus)) {
                boost::system::error_code bad;
                auto status = boost::json::parse(line.substr(kStatus.size()), bad);
                if (!bad) result.statuses.push_back(std::move(status));
            } else if (line.starts_with(kSwapped)) {
                result.swapped.push_back(
                    std::strtoull(std::string(line.substr(kSwapped.size())).c_str(), nullptr, 10) << 10);
            } else if (line.starts_with(kKilled)) {
                result.lives.push_back(
                    std::strtol(std::string(line.substr(kKilled.size())).c_str(), nullptr, 10));
            } else {
                lines += std::string(line) + "\n";
            }
        }
        auto load = parse_load_run(lines);
        if (!load) ADD_FAILURE() << load.error().message << "\n" << output->lines;
        result.load = load.value_or(LoadRun{});
        return result;
    }
    static boost::json::value far_of(const boost::json::value& status) {
        return status.at("targets").at(0).at("far");
    }

    GuestPlan plan_{
        .fast = mebibytes(512), .slow = mebibytes(512), .companion_ms = 0, .kernel_arguments = {}};
    test::TempFolder folder_;
};

// And when what was cold is used all at once, it comes back.
TEST_F(FarInQemu, TheColdPartLeavesAndTheLoadDoesNotMissItUntilItUsesIt) {
    constexpr unsigned kShift = 145;
    const FarRun run = this->run(script(agent(), "512M", 175, fmt::format("--shift {}", kShift)));
    ASSERT_GE(run.statuses.size(), 7U);
    ASSERT_EQ(run.statuses.size(), run.swapped.size());
    // How long a look at it takes depends on what else the machine does.
    const std::size_t before = run.statuses.size() * 7 / 10;
    const auto far = far_of(run.statuses[before]);
    const double swapped = double(run.swapped[before]);
    {
        SCOPED_TRACE(boost::json::serialize(far));
        EXPECT_GT(swapped, 0.2 * double(kCold)) << "on a busy machine it goes slowly";
        EXPECT_NEAR(far.at("out").to_number<double>(), swapped, double(kCold) / 10);
        EXPECT_GT(far.at("saved").to_number<double>(), 0.5 * swapped) << "zram compresses it";
        EXPECT_LT(far.at("came_back").to_number<double>(), 0.02 * double(kCold));
    }
    // Its speed as it began and before it changed; on an emulated processor beside others that is rough.
    std::vector<double> all;
    for (const auto& sample : run.load.samples)
        if (sample.phase == 0) all.push_back(sample.ops_per_second);
    ASSERT_GE(all.size(), 20U);
    const auto quarter = static_cast<std::ptrdiff_t>(all.size() / 4);
    const double first = median({all.begin(), all.begin() + quarter});
    EXPECT_GT(median({all.end() - quarter, all.end()}), 0.5 * first);
    const auto after = far_of(run.statuses.back());
    EXPECT_GT(after.at("came_back").to_number<double>(), double(16 << 20)) << boost::json::serialize(after);
}

// How long it takes until pages count as cold depends on what else the machine does: each life lasts until
// some have been sent, and ends at a random moment while more are, or after a while.
TEST_F(FarInQemu, KilledAgainAndAgainItLosesNothingAndSendsOn) {
    const std::string killer = fmt::format(
        "swapped() {{ awk '/^SwapTotal/ {{t=$2}} /^SwapFree/ {{f=$2}} END {{print t-f}}' /proc/meminfo; }}\n"
        "( while :; do {} --config {} >/run/agent.log 2>&1 & agent=$!\n"
        "before=$(swapped); for i in $(seq 120); do sleep 0.5; [ $(swapped) -gt $((before + 1024)) ] && "
        "break; "
        "done\n"
        "d=$(od -An -N1 -tu1 /dev/urandom); sleep $((d % 4)).$((d % 10))\n"
        "kill -9 $agent; wait $agent; echo \"KILLED $(($(swapped) - before))\"; done ) 2>/dev/null &\n"
        "agent=$!",
        MEMTIDE_AGENT, MEMTIDE_FAR_CONFIG);
    const FarRun run = this->run(script(killer, "512M", 130, ""));
    const auto senders = std::ranges::count_if(run.lives, [](long sent) { return sent > 0; });
    EXPECT_GE(senders, 1) << run.lives.size() << " lives: it is killed while it sends";
}

TEST_F(FarInQemu, FullSwapIsNoHarmAndATenthOfItStaysFree) {
    const FarRun run = this->run(script(agent(), "48M", 150, ""));
    ASSERT_FALSE(run.statuses.empty());
    const auto far = far_of(run.statuses.back());
    EXPECT_EQ(far.at("state").as_string(), "full") << boost::json::serialize(far);
    EXPECT_LT(run.swapped.back(), 46ULL << 20);
    EXPECT_GT(run.swapped.back(), 36ULL << 20);
}

}  // namespace
}  // namespace memtide::bench
