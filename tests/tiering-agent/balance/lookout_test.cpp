#include "tiering-agent/balance/lookout.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kFirst = 0x7f0000000;

std::vector<PageSeen> pages(std::size_t count, std::uint8_t tier) {
    return std::vector<PageSeen>(count, {.tier = tier, .touched = 0});
}

TEST(SlowTouches, AreThoseOfSlowPagesInAWindow) {
    HeatMap heat;
    heat.observe(kFirst, pages(100, 0));
    heat.observe(kFirst + 100, pages(100, 1));
    const Glance glance{.regions = {{kFirst, kFirst + 150, 4}, {kFirst + 150, kFirst + 200, 1}},
                        .windows = 4};
    EXPECT_DOUBLE_EQ(slow_touches(heat, glance), 50 + 50 * 0.25);
    EXPECT_DOUBLE_EQ(slow_touches(heat, Glance{}), 0);
}

// Pages of one process: as many are touched as it says.
class MadeUp final : public Tracker, public Sentinel {
  public:
    [[nodiscard]] std::string_view name() const override { return "made-up"; }
    [[nodiscard]] std::string_view sees() const override { return "some"; }
    Result<> refresh() override { return {}; }
    Result<> begin(int, const WindowWish&) override { return {}; }
    Result<Look> look(int, std::span<const VirtualRange>, const TierOfNode&, const Visit& visit) override {
        for (int group = 0; group < 8; ++group) visit(kFirst + 512 * group, pages(512, 1));
        return Look{.present_pages = 4096};
    }
    Result<> glance(int pid, const WindowWish& wish) override {
        if (pid == gone) return fail(ErrorCode::kNotFound, "it has ended");
        budget += wish.budget;
        ++glances;
        return {};
    }
    [[nodiscard]] milliseconds glance_duration() const override { return milliseconds(40); }
    Result<Glance> end_glance(int) override {
        return Glance{.regions = {{kFirst, kFirst + touched, 4}}, .windows = 4};
    }
    int gone = 0;
    int glances = 0;
    microseconds budget{0};
    std::uint64_t touched = 100;
};

class LookoutTest : public testing::Test {
  protected:
    const Watch& watch(int pid) {
        watches_.push_back(std::make_unique<Watch>(pid, ProcessId{.pid = pid, .start_time = 1}, 0));
        EXPECT_TRUE(watches_.back()->look(memory_, {}, Watch::Time{}));
        return *watches_.back();
    }
    bool is_time(const std::vector<const Watch*>& watches, milliseconds window = milliseconds(10)) {
        return lookout_.is_time(memory_, watches,
                                {.window = window,
                                 .budget = microseconds(8'000),
                                 .matters = 20,
                                 .sleep = [this](milliseconds time) { slept_ += time; }});
    }
    MadeUp memory_;
    Lookout lookout_;
    std::vector<std::unique_ptr<Watch>> watches_;
    milliseconds slept_{0};
};

TEST_F(LookoutTest, MoreTouchesOfSlowPagesThanUsualAreNoticed) {
    const Watch& one = watch(1);
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(is_time({&one}));
    EXPECT_EQ(slept_, milliseconds(400));
    memory_.touched = 400;
    EXPECT_TRUE(is_time({&one}));
}

TEST_F(LookoutTest, AnotherWindowHasAnotherUsual) {
    const Watch& one = watch(1);
    for (int i = 0; i < 10; ++i) is_time({&one});
    memory_.touched = 400;
    EXPECT_FALSE(is_time({&one}, milliseconds(40)));
    for (int i = 0; i < 10; ++i) is_time({&one}, milliseconds(40));
    lookout_.forget();
    memory_.touched = 1'000;
    EXPECT_FALSE(is_time({&one}, milliseconds(40))) << "what was usual was forgotten";
}

TEST_F(LookoutTest, TheLargestShareTheBudgetAndWhoIsGoneIsPassedOver) {
    std::vector<const Watch*> many;
    for (int pid = 1; pid <= 20; ++pid) many.push_back(&watch(pid));
    EXPECT_FALSE(is_time(many));
    EXPECT_EQ(memory_.glances, static_cast<int>(Lookout::kMost));
    EXPECT_EQ(memory_.budget, microseconds(8'000));
    memory_.gone = 1;
    slept_ = {};
    EXPECT_FALSE(is_time({many.front()}));
    EXPECT_EQ(slept_, milliseconds(0)) << "nobody to wait for";
}

}  // namespace
}  // namespace memtide::agent
