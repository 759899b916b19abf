// The balancer on a machine that a folder makes up, with pages that a tracker makes up.
#include "tiering-agent/balance/balancer.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/hints/hint_table.h"
#include "tests/tiering-agent/observe/fake_tree.h"
#include "tiering-agent/balance/rivals.h"

namespace memtide::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kFirstPage = 0x7f0000000;
constexpr std::size_t kPages = 2'048;
constexpr int kPid = 100;

// One process with pages of which the first `fast` are on node 0, and of which some are touched in each
// window.
class FakeMemory final : public Tracker, public Sentinel, public UnitMover {
  public:
    explicit FakeMemory(std::size_t fast) : is_fast(kPages, false), is_hot(kPages, false) {
        std::fill_n(is_fast.begin(), fast, true);
    }

    [[nodiscard]] std::string_view name() const override { return "made-up"; }
    [[nodiscard]] std::string_view sees() const override { return "everything"; }
    Result<> refresh() override { return {}; }
    Sentinel* sentinel() override { return this; }
    Result<> glance(int, const WindowWish&) override { return {}; }
    [[nodiscard]] std::chrono::milliseconds glance_duration() const override { return {}; }
    Result<Glance> end_glance(int) override {
        return Glance{.regions = {{kFirstPage, kFirstPage + kPages, glance_touches}}, .windows = 4};
    }
    Result<> begin(int pid, const WindowWish& now) override {
        wish = now;
        if (is_gone) return fail(ErrorCode::kNotFound, "it has ended");
        begun.insert(pid);
        return {};
    }
    Result<Look> look(int, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        if (is_gone) return fail(ErrorCode::kNotFound, "it has ended");
        ++looks;
        looked_at.assign(ranges.begin(), ranges.end());
        if (ranges.empty()) return Look{};
        std::vector<PageSeen> seen;
        Look look;
        for (std::size_t i = 0; i < kPages; ++i) {
            seen.push_back({.tier = tiers.at(is_fast[i] ? 0 : 1), .touched = is_hot[i]});
            look.touched_pages += is_hot[i] ? 1 : 0;
            look.touched_slow_pages += is_hot[i] && !is_fast[i] ? 1 : 0;
        }
        look.present_pages = kPages;
        visit(kFirstPage, seen);
        return look;
    }
    Result<std::vector<int>> move(int pid, std::span<const std::uint64_t> pages, int node) override {
        if (is_gone) return fail(ErrorCode::kNotFound, "it has ended");
        EXPECT_EQ(pid, kPid);
        const std::lock_guard lock(moving);
        for (const std::uint64_t page : pages) {
            if (error == 0) is_fast.at(page - kFirstPage) = node == 0;
            ++moves;
        }
        return std::vector<int>(pages.size(), error);
    }
    void make_hot(std::size_t first, std::size_t count) {
        is_hot.assign(kPages, false);
        std::fill_n(is_hot.begin() + static_cast<std::ptrdiff_t>(first), count, true);
    }
    [[nodiscard]] std::size_t hot_and_fast() const {
        std::size_t count = 0;
        for (std::size_t i = 0; i < kPages; ++i) count += is_hot[i] && is_fast[i] ? 1 : 0;
        return count;
    }

    std::mutex moving;
    std::vector<bool> is_fast;
    std::vector<bool> is_hot;
    std::set<int> begun;
    WindowWish wish;
    std::vector<VirtualRange> looked_at;
    bool is_gone = false;
    int looks = 0;
    int error = 0;
    std::size_t moves = 0;
    std::atomic<std::uint32_t> glance_touches = 0;
};

class Balance : public testing::Test {
  protected:
    Balance() : files_(tree_.files().absolute("")) {
        tree_.put_node(
            {.number = 0, .cpus = "0-1", .mebibytes = 16, .free_mebibytes = 0, .distances = "10 20"});
        tree_.put_node(
            {.number = 1, .cpus = "", .mebibytes = 64, .free_mebibytes = 32, .distances = "20 10"});
        put_room(40, 8'000);  // the reserve of the faster tier, and no more
        tree_.put_process({.pid = kPid, .start_time = 5});
        put_maps("7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n");
        tree_.put("proc/100/status", "Name:\tworker\nVmLck:\t0 kB\nHugetlbPages:\t0 kB\n");
        options_.config.mode = TieringMode::kMove;
        options_.config.targets = {{.name = "all"}};
        options_.least_rss = {};
        options_.refresh_every = std::chrono::milliseconds(0);
        options_.pace.shortest_window = options_.pace.longest_window = std::chrono::milliseconds(1);
        memory_.make_hot(1'000, 200);
    }
    void put_room(std::uint64_t fast, std::uint64_t slow) const {
        const auto zone = [](int node, std::uint64_t pages) {
            return "Node " + std::to_string(node) + ", zone Normal\n  pages free " + std::to_string(pages) +
                   "\n        high 0\n";
        };
        tree_.put("proc/zoneinfo", zone(0, fast) + zone(1, slow));
    }
    void put_maps(const std::string& text) const {
        tree_.put("proc/100/maps", text);
        tree_.put("proc/100/numa_maps", "7f0000000000 default anon=2048 N0=500\n");
    }
    void put_ticks(int ticks) const {
        if (!tree_.files().exists("proc/100/stat")) return;
        tree_.put("proc/100/stat", "100 (worker) S 1 0 0 0 -1 0 99 0 0 0 " + std::to_string(ticks) +
                                       " 0 0 0 20 0 1 0 " + std::to_string(start_time_) +
                                       " 3133440 410 184467 4096 93926 140726 0\n");
    }
    // The process says so of its pages from `first` on.
    void put_hint(std::uint64_t first, std::uint64_t count, Hint hint) const {
        put_maps(
            "00003000-00103000 rw-p 00000000 00:01 5 /memfd:memtide-hints (deleted)\n"
            "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n");
        tree_.put("proc/100/numa_maps", "3000 default\n7f0000000000 default anon=2048 N0=500\n");
        hint_table::Header header;
        std::memcpy(header.magic, hint_table::kMagic, sizeof header.magic);
        header.sequence = 2;
        header.entries = 1;
        const hint_table::Entry entry{
            .begin_and_hint = (kFirstPage + first) << kPageShift | static_cast<std::uint64_t>(hint),
            .end = (kFirstPage + first + count) << kPageShift};
        std::string memory(0x3000, '\0');
        memory.append(reinterpret_cast<const char*>(&header), sizeof header);
        memory.append(reinterpret_cast<const char*>(&entry), sizeof entry);
        tree_.put("proc/100/mem", memory);
    }
    BalanceStatus run(int rounds) {
        if (!balancer_) balancer_.emplace(Balancer::Parts{files_, memory_, memory_}, options_);
        for (int i = 0; i < rounds; ++i) {
            if (is_busy_) put_ticks(++ticks_);
            balancer_->round({});
        }
        return balancer_->status();
    }

    FakeTree tree_;
    Files files_;
    FakeMemory memory_{500};
    BalanceOptions options_;
    std::optional<Balancer> balancer_;
    bool is_busy_ = true;
    int ticks_ = 0;
    int start_time_ = 5;
};

// As on every machine whose caches have filled what was free.
TEST_F(Balance, PagesChangePlacesWhereBothTiersAreFull) {
    put_room(0, 0);
    tree_.put_node({.number = 1, .cpus = "", .mebibytes = 64, .free_mebibytes = 2, .distances = "20 10"});
    run(10);
    EXPECT_EQ(memory_.hot_and_fast(), 200U);
    EXPECT_EQ(std::count(memory_.is_fast.begin(), memory_.is_fast.end(), true), 500);
}

// The first second counts for nothing: who waited before is not known.
TEST_F(Balance, PagesMoveSlowlyWhileProcessesWaitForMemory) {
    tree_.put("sys/fs/cgroup/system.slice/worker.service/memory.stat", "anon 1\n");
    tree_.put("sys/fs/cgroup/system.slice/worker.service/memory.pressure", "some avg10=0.00 total=1000\n");
    run(1);
    EXPECT_EQ(balancer_->status().targets[0].pace, 1);
    tree_.put("sys/fs/cgroup/system.slice/worker.service/memory.pressure", "some avg10=90.00 total=900000\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(1'100));
    run(1);
    EXPECT_EQ(balancer_->status().targets[0].pace, 0.5);
    EXPECT_TRUE(balancer_->status().targets[0].is_pressure);
}

class MadeUpLatency final : public MemoryLatency {
  public:
    std::optional<double> measure(int node) override {
        asked.insert(node);
        return node == 0 ? fast : 250;
    }
    void keep_only(const std::set<int>& nodes) override { kept = nodes; }

    double fast = 100;
    std::set<int> asked;
    std::set<int> kept;
};

TEST_F(Balance, LessFallsOnTheFastestTierWhereItAnswersLate) {
    MadeUpLatency latency;
    options_.probe_every = std::chrono::milliseconds(0);
    balancer_.emplace(Balancer::Parts{files_, memory_, memory_, nullptr, &latency}, options_);
    run(20);
    EXPECT_EQ(memory_.hot_and_fast(), 200U);
    EXPECT_EQ(latency.kept, (std::set{0, 1}));
    latency.fast = 900;
    const BalanceStatus status = run(60);
    EXPECT_NEAR(status.most_fast, 0.3, 1e-9);
    EXPECT_EQ(status.fast_ns, 900);
    EXPECT_LT(memory_.hot_and_fast(), 100U);
    EXPECT_GT(memory_.hot_and_fast(), 20U);
    options_.config.spread = false;
    balancer_->set_config(options_.config);
    EXPECT_EQ(run(1).most_fast, 1) << "nobody wants that any more";
}

TEST_F(Balance, WhatLookingMayCostIsTheConfigurationsToSay) {
    options_.config.processor_share_changing = 0.5;
    run(1);
    EXPECT_EQ(memory_.wish.budget, std::chrono::milliseconds(500));
}

TEST_F(Balance, NothingMovesWhereThereIsNothingFreeAtAll) {
    put_room(0, 0);
    tree_.put_node({.number = 1, .cpus = "", .mebibytes = 64, .free_mebibytes = 0, .distances = "20 10"});
    run(10);
    EXPECT_EQ(memory_.moves, 0U);
}

TEST_F(Balance, HotPagesComeUpAndTheStatusTells) {
    const BalanceStatus status = run(20);
    EXPECT_EQ(memory_.hot_and_fast(), 200U);
    EXPECT_EQ(std::ranges::count(memory_.is_fast, true), 500) << "as many went down";
    EXPECT_THAT(memory_.looked_at, ElementsAre(VirtualRange{0x7f0000000000, 0x7f0000800000}));
    EXPECT_EQ(status.promoted_pages, 200U);
    EXPECT_EQ(status.demoted_pages, 200U);
    EXPECT_GT(status.hit, 0.95);
    EXPECT_EQ(status.tracker, "made-up (everything)");
    ASSERT_EQ(status.tiers.size(), 2U);
    ASSERT_EQ(status.targets.size(), 1U);
    EXPECT_EQ(status.targets[0].processes, 1U);
    EXPECT_THAT(status.targets[0].pages_by_tier, ElementsAre(500, kPages - 500));
    EXPECT_EQ(status.targets[0].promoted_pages, 200U);
}

TEST_F(Balance, ObservingMovesExactlyNothing) {
    options_.config.mode = TieringMode::kObserve;
    const BalanceStatus status = run(20);
    EXPECT_EQ(memory_.moves, 0U);
    EXPECT_LT(status.hit, 0.5);
    EXPECT_EQ(status.targets[0].processes, 1U);
}

TEST_F(Balance, ATargetThatIsOnlyObservedIsLookedAtAndNotMoved) {
    options_.config.targets[0].mode = TieringMode::kObserve;
    EXPECT_EQ(run(20).targets[0].processes, 1U);
    EXPECT_GT(memory_.looks, 0);
    EXPECT_EQ(memory_.moves, 0U);
}

TEST_F(Balance, ATargetThatIsOffIsNotEvenLookedAt) {
    options_.config.targets[0].mode = TieringMode::kOff;
    run(5);
    EXPECT_TRUE(memory_.begun.empty());
}

TEST_F(Balance, WhatIsLockedOrHasAPolicyOfItsOwnStaysOutOfIt) {
    tree_.put("proc/100/numa_maps", "7f0000000000 bind:1 anon=2048 N1=2048\n");
    run(20);
    EXPECT_TRUE(memory_.looked_at.empty());
    EXPECT_EQ(memory_.moves, 0U);
}

TEST_F(Balance, IdleProcessesAreHardlyLookedAt) {
    run(2);
    is_busy_ = false;
    run(1);  // that shows it
    memory_.looks = 0;
    run(40);
    EXPECT_EQ(memory_.looks, 10);
}

TEST_F(Balance, AProcessThatEndsInTheMiddleIsForgotten) {
    run(2);
    memory_.is_gone = true;
    EXPECT_EQ(run(1).targets[0].processes, 0U);
    tree_.remove("proc/100");
    tree_.put_process({.pid = 200, .start_time = 5});
    memory_.is_gone = false;
    start_time_ = 9;
    tree_.put_process({.pid = kPid, .start_time = 9});
    put_maps("7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n");
    tree_.put("proc/100/status", "Name:\tworker\nVmLck:\t0 kB\nHugetlbPages:\t0 kB\n");
    run(20);
    EXPECT_EQ(memory_.hot_and_fast(), 200U) << "another with its pid";
}

// Its pid went to another between two looks at who is there.
TEST_F(Balance, AStrangersPagesAreNotMoved) {
    options_.refresh_every = std::chrono::hours(1);
    options_.config.targets[0].mode = options_.config.mode;
    run(2);
    const std::size_t before = memory_.moves;
    start_time_ = 9;
    is_busy_ = true;
    run(10);
    EXPECT_EQ(memory_.moves, before);
}

TEST_F(Balance, AFullNodeIsTriedAgainWhenItIsNotFull) {
    memory_.error = ENOMEM;
    const BalanceStatus failing = run(20);
    EXPECT_GT(failing.failed_pages.at(ENOMEM), 0U);
    EXPECT_EQ(failing.promoted_pages, 0U);
    memory_.error = 0;
    run(10);
    EXPECT_EQ(memory_.hot_and_fast(), 200U);
}

TEST_F(Balance, PagesThatCannotMoveAreLeftAloneForAWhile) {
    memory_.error = EBUSY;
    run(10);
    const std::size_t moves = memory_.moves;
    run(10);
    EXPECT_EQ(memory_.moves, moves);
}

TEST_F(Balance, ARateLimitHolds) {
    options_.config.targets[0].rate_limit = Bytes{40 << kPageShift};
    run(6);
    EXPECT_LE(memory_.moves, 80U) << "of a second at most, and what the rounds took";
    EXPECT_GT(memory_.moves, 0U);
}

TEST_F(Balance, ATargetUsesTheTiersThatItMay) {
    options_.config.targets[0].tiers = {"slow"};
    run(10);
    EXPECT_EQ(memory_.moves, 0U);
}

TEST_F(Balance, ANodeThatComesIsATierFromThenOn) {
    tree_.remove("sys/devices/system/node/node1");
    memory_.is_fast.assign(kPages, true);
    EXPECT_EQ(run(3).tiers.size(), 1U);
    EXPECT_EQ(memory_.moves, 0U);
    tree_.put_node({.number = 1, .cpus = "", .mebibytes = 64, .free_mebibytes = 32, .distances = "20 10"});
    EXPECT_EQ(run(3).tiers.size(), 2U);
}

TEST_F(Balance, NothingGoesToANodeThatLeaves) {
    run(0);
    balancer_->set_leaving({1});
    run(10);
    EXPECT_EQ(memory_.moves, 0U) << "no demotion, and so no room for what is hot";
    balancer_->set_leaving({});
    run(10);
    EXPECT_EQ(memory_.hot_and_fast(), 200U);
}

// It rests for a minute where nothing is to be gained, and is back at once when something begins to change.
TEST_F(Balance, ARestEndsWhenAGlanceSeesAChange) {
    options_.glance_every = std::chrono::milliseconds(1);
    options_.pace.shortest_period = std::chrono::minutes(1);
    options_.pace.longest_rest = std::chrono::minutes(1);
    options_.refresh_every = std::chrono::hours(1);  // who is busy stays so
    memory_.make_hot(0, 0);
    run(20);
    ASSERT_GT(balancer_->status().rest, std::chrono::seconds(10));
    std::jthread thread([this](const std::stop_token& stop) { balancer_->run(stop); });
    const auto rounds_reach = [this](std::uint64_t rounds) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (balancer_->status().rounds < rounds && std::chrono::steady_clock::now() < deadline)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return balancer_->status().rounds >= rounds;
    };
    ASSERT_TRUE(rounds_reach(21));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // for some glances
    EXPECT_EQ(balancer_->status().rounds, 21U);
    memory_.glance_touches = 4;
    EXPECT_TRUE(rounds_reach(22));
}

TEST_F(Balance, WhatAProcessSaysOfItsMemoryIsObeyed) {
    memory_.make_hot(0, 0);
    put_hint(1'000, 150, Hint::kHot);
    const BalanceStatus status = run(10);
    EXPECT_EQ(std::ranges::count(memory_.is_fast, true), 500);
    EXPECT_TRUE(
        std::all_of(memory_.is_fast.begin() + 1'000, memory_.is_fast.begin() + 1'150, std::identity{}));
    EXPECT_EQ(status.targets[0].hot_pages, 150U);
    EXPECT_EQ(status.targets[0].pinned_pages, 0U);
}

TEST_F(Balance, WhatIsSaidToBeColdMakesRoomForWhatIsHot) {
    memory_.make_hot(300, 400);  // of these 200 are fast, and those before them are not touched
    put_hint(400, 100, Hint::kCold);
    EXPECT_EQ(run(20).targets[0].cold_pages, 100U);
    EXPECT_TRUE(std::none_of(memory_.is_fast.begin() + 400, memory_.is_fast.begin() + 500, std::identity{}));
    EXPECT_EQ(memory_.hot_and_fast(), 300U);
}

TEST_F(Balance, AnOperatorCanRefuseHints) {
    options_.config.targets[0].hints = false;
    memory_.make_hot(0, 0);
    put_hint(1'000, 150, Hint::kPin);
    EXPECT_EQ(run(10).targets[0].pinned_pages, 0U);
    EXPECT_EQ(memory_.moves, 0U);
}

TEST_F(Balance, HintsReachNoFurtherThanTheShareOfTheTarget) {
    // Beside a target of that weight its own share of 4,096 pages is one in a hundred.
    options_.config.targets = {{.name = "worker", .match = {.pids = {kPid}}, .weight = 100},
                               {.name = "other", .weight = 9'900}};
    tree_.put_process({.pid = 200, .start_time = 5});
    tree_.put("proc/200/maps", "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n");
    tree_.put("proc/200/numa_maps", "7f0000000000 default anon=2048 N0=500\n");
    tree_.put("proc/200/status", "Name:\tworker\nVmLck:\t0 kB\nHugetlbPages:\t0 kB\n");
    memory_.make_hot(0, 0);
    put_hint(1'000, 150, Hint::kHot);
    run(10);
    EXPECT_EQ(std::count(memory_.is_fast.begin() + 1'000, memory_.is_fast.begin() + 1'150, true), 40);
}

TEST_F(Balance, WhoWantsToKnowIsToldOfTiersWhenTheyChange) {
    std::vector<std::size_t> told;
    options_.on_tiers = [&](const Tiers& tiers) { told.push_back(tiers.tiers.size()); };
    run(3);
    tree_.remove("sys/devices/system/node/node1");
    memory_.is_fast.assign(kPages, true);
    run(3);
    EXPECT_THAT(told, ElementsAre(2U, 1U));
}

TEST_F(Balance, RivalsAreNamed) {
    EXPECT_TRUE(find_rivals(files_).empty());
    tree_.put("proc/sys/kernel/numa_balancing", "2\n");
    tree_.put("sys/kernel/mm/numa/demotion_enabled", "true\n");
    tree_.put("sys/kernel/mm/damon/admin/kdamonds/0/state", "on\n");
    EXPECT_THAT(run(1).notes,
                ElementsAre(HasSubstr("sysctl kernel.numa_balancing=0"), HasSubstr("demotion_enabled"),
                            HasSubstr("DAMON runs (kdamond 0)")));
}

}  // namespace
}  // namespace memtide::agent
