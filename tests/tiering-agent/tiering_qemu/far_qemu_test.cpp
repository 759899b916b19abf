// The far tier on a real kernel: a QEMU guest with swap on zram. The load checks its own data: every page has
// to come back as it was, with each update that was made.
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/bench/tiering/figures.h"
#include "tests/bench/tiering/guest.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

constexpr unsigned kFarLimit = 260;  // seconds of a run at most
constexpr std::uint64_t kCold = 160ULL << 20;

std::string far_why_not() {
    if (geteuid() != 0) return "needs root: the guest's files are this machine's";
    const char* const cache = std::getenv("MEMTIDE_CACHE");
    const std::string guest = std::string(cache == nullptr ? "/var/cache/memtide" : cache) + "/guest/vmlinuz";
    return std::filesystem::exists(guest) ? "" : "no guest kernel in " + guest + ": run scripts/setup";
}

// What one run said: the load, and beside it every 10 s the agent's status and what of the load is in swap.
struct FarRun {
    LoadRun load;
    std::vector<boost::json::value> statuses;
    std::vector<std::uint64_t> swapped;  // bytes
};

class FarInQemu : public testing::Test {
  protected:
    void SetUp() override {
        if (const auto reason = far_why_not(); !reason.empty()) GTEST_SKIP() << reason;
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
            "    echo \"SWAPPED $(sed -n 's/^VmSwap: *\\([0-9]*\\) kB/\\1/p' /proc/$(pgrep -P "
            "$load)/status)\"\n"
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
            if (line.starts_with(kStatus)) {
                boost::system::error_code bad;
                auto status = boost::json::parse(line.substr(kStatus.size()), bad);
                if (!bad) result.statuses.push_back(std::move(status));
            } else if (line.starts_with(kSwapped)) {
                result.swapped.push_back(
                    std::strtoull(std::string(line.substr(kSwapped.size())).c_str(), nullptr, 10) << 10);
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

TEST_F(FarInQemu, TheColdPartLeavesAndTheLoadDoesNotMissIt) {
    const FarRun run = this->run(script(agent(), "512M", 170, ""));
    ASSERT_FALSE(run.statuses.empty());
    ASSERT_FALSE(run.swapped.empty());
    const auto far = far_of(run.statuses.back());
    SCOPED_TRACE(boost::json::serialize(far));
    EXPECT_GT(run.swapped.back(), kCold * 7 / 10);
    EXPECT_NEAR(far.at("out").to_number<double>(), double(run.swapped.back()), double(kCold) / 10);
    EXPECT_GT(far.at("saved").to_number<double>(), 0.5 * double(kCold) * 7 / 10) << "zram compresses it";
    EXPECT_LT(far.at("came_back").to_number<double>(), 0.02 * double(kCold));
    // Its speed as it began and as it ended; on an emulated processor beside others that is rough.
    const auto& samples = run.load.samples;
    ASSERT_GE(samples.size(), 20U);
    std::vector<double> first;
    std::vector<double> last;
    for (std::size_t i = 1; i <= samples.size() / 4; ++i) {
        first.push_back(samples[i].ops_per_second);
        last.push_back(samples[samples.size() - i].ops_per_second);
    }
    EXPECT_GT(median(last), 0.5 * median(first));
}

// What was cold is used all at once: it comes back, and the agent stops sending.
TEST_F(FarInQemu, AChangeOfWhatIsUsedBringsItBack) {
    const FarRun run = this->run(script(agent(), "512M", 150, "--shift 110"));
    ASSERT_GE(run.swapped.size(), 12U);
    EXPECT_GT(run.swapped[9], kCold / 4);
    const auto far = far_of(run.statuses.back());
    EXPECT_GT(far.at("came_back").to_number<double>(), double(32 << 20)) << boost::json::serialize(far);
}

TEST_F(FarInQemu, KilledAgainAndAgainItLosesNothingAndSendsOn) {
    const std::string killer = fmt::format(
        "( while :; do {} --config {} >/run/agent.log 2>&1 & agent=$!\n"
        "d=$(od -An -N1 -tu1 /dev/urandom); sleep $((15 + d % 20)).$((d % 10))\n"
        "kill -9 $agent; wait $agent; echo k >>/run/kills; done ) 2>/dev/null &\nagent=$!",
        MEMTIDE_AGENT, MEMTIDE_FAR_CONFIG);
    const FarRun run = this->run(script(killer, "512M", 150, ""));
    ASSERT_FALSE(run.swapped.empty());
    EXPECT_GT(run.swapped.back(), 2ULL << 20) << "it lived long enough to send something";
}

TEST_F(FarInQemu, FullSwapIsNoHarmAndATenthOfItStaysFree) {
    const FarRun run = this->run(script(agent(), "48M", 140, ""));
    ASSERT_FALSE(run.statuses.empty());
    const auto far = far_of(run.statuses.back());
    EXPECT_EQ(far.at("state").as_string(), "full") << boost::json::serialize(far);
    EXPECT_LT(run.swapped.back(), 46ULL << 20);
    EXPECT_GT(run.swapped.back(), 36ULL << 20);
}

}  // namespace
}  // namespace memtide::bench
