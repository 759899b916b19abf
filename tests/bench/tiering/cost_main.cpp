// bench_tiering_cost: what looking at memory and planning takes of a processor and of memory, natively, with
// no guest: this process is the one that is watched. Which pages are touched is made up, and nothing is
// moved; what the kernel does for a tracker (page faults, DAMON's thread) is not in it.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/bench/figure.h"
#include "tiering-agent/balance/watch.h"
#include "tiering-agent/observe/processes.h"
#include "tiering-agent/observe/processor_time.h"
#include "tiering-agent/policy/exchange.h"
#include "tiering-agent/policy/pace.h"
#include "tiering-agent/track/page_looker.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;

constexpr std::size_t kWatched = std::size_t{2} << 30;
constexpr double kReported = 16;  // GiB
constexpr int kRounds = 40;
constexpr int kWarmUp = 10;

// A third of the memory is fast; a tenth of it all, at random and always the same, is hot.
class MadeUpTouches final : public Tracker {
  public:
    explicit MadeUpTouches(PageLooker looker) : looker_(std::move(looker)) {}
    [[nodiscard]] std::string_view name() const override { return "made-up"; }
    [[nodiscard]] std::string_view sees() const override { return "what it makes up"; }
    Result<> refresh() override { return {}; }
    Result<> begin(int, const WindowWish&) override { return {}; }
    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        const PageLooker::Ask ask = [this](std::uint64_t page, std::uint64_t, PageMapEntry) {
            const bool is_hot = page * 0x9e3779b97f4a7c15 >> 60 == 0;
            random_ = random_ * 6364136223846793005 + 1442695040888963407;
            return Touches{.touched = static_cast<std::uint8_t>(is_hot || random_ >> 60 == 0), .windows = 1};
        };
        const Visit in_tiers = [&](std::uint64_t page, std::span<const PageSeen> seen) {
            seen_.assign(seen.begin(), seen.end());
            const auto tier = static_cast<std::uint8_t>(page / kPagesPerHuge % 3 == 0 ? 0 : 1);
            for (PageSeen& one : seen_)
                if (one.tier != PageHeat::kNowhere) one.tier = tier;
            visit(page, seen_);
        };
        return looker_.look(pid, ranges, tiers, ask, in_tiers);
    }

  private:
    PageLooker looker_;
    std::vector<PageSeen> seen_;
    std::uint64_t random_ = 1;
};

Result<> measure(bool huge) {
    Files files;
    auto looker = PageLooker::make(files);
    if (!looker) return std::unexpected(looker.error());
    MadeUpTouches tracker(*std::move(looker));
    void* const memory =
        ::mmap(nullptr, kWatched, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail_errno("map", "memory to watch", errno);
    ::madvise(memory, kWatched, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (std::size_t at = 0; at < kWatched; at += 4096) static_cast<volatile char*>(memory)[at] = 1;

    const TieringTarget target{.name = "all"};
    const auto text = files.read("proc/self/stat");
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat) return fail(ErrorCode::kUnavailable, "this process cannot be looked at");
    Watch watch(1, {.pid = ::getpid(), .start_time = stat->start_time}, 0);
    const TierOfNode tiers(64, 0);
    Pace pace({});
    std::vector<double> round_ms;
    std::vector<double> percent;
    for (int round = 0; round < kWarmUp + kRounds; ++round) {
        const microseconds before = processor_time();
        if (auto done = watch.refresh(files, target, std::chrono::steady_clock::now()); !done) return done;
        const auto look = watch.look(tracker, tiers, std::chrono::steady_clock::now());
        if (!look) return std::unexpected(look.error());
        const Space space{.id = 1, .heat = &watch.heat()};
        const Pair pair{.fast = 0, .slow = 1, .fast_free = 0, .slow_free = 1 << 20, .reserve = 0};
        const ExchangePlan plan = plan_exchange(std::span(&space, 1), pair, {}, nullptr);
        const microseconds cost = processor_time() - before;
        if (round < kWarmUp) continue;
        const double gibibytes = double(watch.present_pages()) / (1 << 18);
        round_ms.push_back(double(cost.count()) / 1e3 / gibibytes);
        // As though there were so much of it, and nothing moved.
        const auto all = std::chrono::duration_cast<microseconds>(cost / gibibytes * kReported);
        pace.note({.present_pages = look->present_pages,
                   .touched_pages = look->touched_pages,
                   .touched_slow_pages = look->touched_slow_pages,
                   .fast_pages = look->present_pages / 3,
                   .is_even = plan.is_even,
                   .cost = all,
                   .blur = all});
        percent.push_back(100 * double(all.count()) /
                          double(microseconds(pace.window() + pace.rest()).count()));
    }
    const std::string suffix = huge ? "_thp" : "";
    bench::print_figure("tiering-cost", "round_ms_per_gib" + suffix, "ms of a core", round_ms);
    // The pace has come to rest by the second half of the rounds.
    bench::print_figure("tiering-cost", "cpu_percent_per_16gib" + suffix, "% of a core",
                        {percent.begin() + kRounds / 2, percent.end()});
    bench::print_figure("tiering-cost", "memory_fraction" + suffix, "share",
                        {double(watch.heat().memory()) / double(watch.present_pages() << kPageShift)});
    ::munmap(memory, kWatched);
    return {};
}

}  // namespace
}  // namespace memtide::agent

int main() {
    for (const bool huge : {false, true})
        if (const auto done = memtide::agent::measure(huge); !done) {
            std::fprintf(stderr, "tiering-cost: %s\n", done.error().message.c_str());
            return 1;
        }
    return 0;
}
