// The keeper with a far tier that is made up, on a machine that a folder makes up.
#include "tiering-agent/far/far_keeper.h"

#include <cerrno>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr std::uint64_t kFirst = 1'024;
constexpr std::size_t kCount = 2'048;

class MadeUpTier final : public FarTier {
  public:
    [[nodiscard]] std::string_view name() const override { return "made-up"; }
    [[nodiscard]] Result<FarRoom> room() const override {
        if (is_away) return fail(ErrorCode::kUnavailable, "there is none");
        return FarRoom{.capacity = capacity,
                       .free = Bytes{capacity.value - std::min(capacity.value, held.size() << kPageShift)},
                       .kept = kept,
                       .taken = taken};
    }
    Result<std::vector<Outcome>> page_out(ProcessId process, std::span<const FarUnit> units) override {
        if (process.pid == gone) return fail(ErrorCode::kNotFound, "it has ended");
        std::vector<Outcome> outcomes;
        for (const FarUnit& unit : units) {
            EXPECT_TRUE(outcomes.empty() || unit.page > units[outcomes.size() - 1].page);
            if (error == 0) held.insert(unit.page);
            outcomes.push_back({.taken = error == 0 ? unit.pages : 0, .error = error});
        }
        return outcomes;
    }
    Result<std::vector<Where>> find(ProcessId, std::span<const std::uint64_t> pages) override {
        std::vector<Where> where;
        for (const std::uint64_t page : pages)
            where.push_back(held.contains(page) ? Where::kFar : Where::kNowhere);
        return where;
    }

    std::set<std::uint64_t> held;
    Bytes capacity = gibibytes(1);
    Bytes kept{};
    Bytes taken{};
    bool is_away = false;
    int error = 0;
    int gone = 0;
};

class Far : public testing::Test {
  protected:
    Far() {
        put_pressure(0);
        targets_[0].far = FarLimits{.after = seconds(40), .pressure = 0.001, .refaults = 0.01};
    }
    void put_pressure(std::uint64_t total_us) const {
        tree_.put("proc/pressure/memory", fmt::format("some avg10=0 avg60=0 avg300=0 total={}\n", total_us));
    }
    // Rounds of a second each, in which the first `hot` pages are touched.
    void run(unsigned rounds, std::size_t hot = kCount / 2) {
        for (unsigned i = 0; i < rounds; ++i) {
            now_ += seconds(1);
            std::vector<PageSeen> seen(kCount);
            std::uint64_t present = 0;
            for (std::size_t p = 0; p < kCount; ++p) {
                if (p < hot) tier_.held.erase(kFirst + p);
                if (tier_.held.contains(kFirst + p)) continue;
                seen[p] = {page_tier_, p < hot, false};
                ++present;
            }
            heat_.observe(kFirst, seen);
            pages_by_tier_.assign(PageHeat::kTiers, 0);
            pages_by_tier_[page_tier_] = present;
            keeper_.round({{.space = 7,
                            .process = {100, 5},
                            .target = 0,
                            .cgroup = "/a",
                            .heat = &heat_,
                            .ranges = &ranges_,
                            .pages_by_tier = &pages_by_tier_,
                            .may_send = may_send_}},
                          targets_, now_, [this] { return may_go_on_; });
        }
    }
    [[nodiscard]] const FarStatus::OfTarget& told() const { return keeper_.status().targets.at(0); }

    FakeTree tree_;
    MadeUpTier tier_;
    HeatMap heat_;
    std::vector<VirtualRange> ranges_{{kFirst << kPageShift, (kFirst + kCount) << kPageShift}};
    std::vector<std::uint64_t> pages_by_tier_;
    std::vector<TieringTarget> targets_{{.name = "all"}};
    FarKeeper keeper_{tier_, tree_.files(), {.processor_share = 1000, .interval = milliseconds(4'500)}};
    FarKeeper::Time now_{seconds(1'000)};
    std::uint8_t page_tier_ = 1;
    bool may_send_ = true;
    bool may_go_on_ = true;
};

TEST_F(Far, WhatIsColdGoesBitByBitAndTheStatusTells) {
    run(72);
    EXPECT_GT(tier_.held.size(), 0U);
    EXPECT_LT(tier_.held.size(), kCount / 4);
    EXPECT_EQ(told().state, "sending");
    EXPECT_THAT(told().why, HasSubstr("a minute at most"));
    run(700);
    EXPECT_EQ(tier_.held.size(), kCount / 2);
    EXPECT_EQ(told().out_pages, kCount / 2);
    EXPECT_EQ(told().sent_pages, kCount / 2);
    EXPECT_EQ(told().returned_pages, 0U);
    EXPECT_EQ(told().state, "nothing-cold");
    EXPECT_EQ(keeper_.status().tier, "made-up");
    EXPECT_EQ(*tier_.held.begin(), kFirst + kCount / 2) << "nothing that is touched";
    EXPECT_GT(keeper_.status().memory_bytes, 2 * kCount);
}

TEST_F(Far, WhatComesBackIsCountedAndStopsIt) {
    run(800);
    run(8, kCount * 3 / 4);
    EXPECT_EQ(told().returned_pages, kCount / 4);
    EXPECT_EQ(told().state, "comes-back");
    EXPECT_THAT(told().why, HasSubstr("came back within a minute"));
}

TEST_F(Far, NothingGoesFromATargetThatIsOnlyObserved) {
    may_send_ = false;
    run(200);
    EXPECT_TRUE(tier_.held.empty());
    EXPECT_EQ(told().state, "observed");
    EXPECT_EQ(told().cold_pages, kCount / 2) << "and what could go is told";
}

TEST_F(Far, WithoutATierNothingGoesAndItIsSaid) {
    tier_.is_away = true;
    run(100);
    EXPECT_TRUE(tier_.held.empty());
    EXPECT_EQ(told().state, "unavailable");
    EXPECT_EQ(keeper_.status().unavailable, "there is none");
    tier_.is_away = false;
    run(100);
    EXPECT_FALSE(tier_.held.empty()) << "it may come later";
    EXPECT_EQ(keeper_.status().unavailable, "");
}

TEST_F(Far, ATenthOfTheTierStaysFree) {
    tier_.capacity = Bytes{500 << kPageShift};
    run(800);
    EXPECT_EQ(tier_.held.size(), 450U);
    EXPECT_EQ(told().state, "full");
}

TEST_F(Far, WhatDoesNotCompressIsNotCompressed) {
    tier_.kept = mebibytes(100);
    tier_.taken = mebibytes(90);
    run(100);
    EXPECT_TRUE(tier_.held.empty());
    EXPECT_THAT(told().why, HasSubstr("do not compress"));
}

TEST_F(Far, PressureStopsIt) {
    run(100);
    const std::size_t before = tier_.held.size();
    put_pressure(1'000'000);
    run(20);
    EXPECT_EQ(told().state, "pressure");
    EXPECT_EQ(tier_.held.size(), before);
}

TEST_F(Far, TheKernelsCountOfWhatComesBackStopsItToo) {
    tree_.put("sys/fs/cgroup/a/memory.stat", "workingset_refault_anon 5\n");
    run(100);
    tree_.put("sys/fs/cgroup/a/memory.stat", "workingset_refault_anon 5000\n");
    run(10);
    EXPECT_EQ(told().state, "comes-back");
}

TEST_F(Far, WhatTheTierDoesNotTakeIsLeftAloneForLong) {
    tier_.error = EBUSY;
    run(80);
    const std::uint64_t kept = told().kept_pages.at(EBUSY);
    EXPECT_GT(kept, 0U);
    tier_.error = 0;
    run(500);
    EXPECT_EQ(tier_.held.size() + kept, kCount / 2);
    EXPECT_EQ(told().sent_pages, tier_.held.size());
}

TEST_F(Far, OnlyWhatMayLeaveDoes) {
    ranges_ = {{(kFirst + kCount - 100) << kPageShift, (kFirst + kCount) << kPageShift}};
    run(800);
    EXPECT_LE(tier_.held.size(), 100U);
    for (const std::uint64_t page : tier_.held) EXPECT_GE(page, kFirst + kCount - 100);
}

TEST_F(Far, AProcessThatEndsMeanwhileIsNoError) {
    tier_.gone = 100;
    run(200);
    EXPECT_EQ(told().sent_pages, 0U);
    keeper_.round({}, targets_, now_ + seconds(10), [] { return true; });
    EXPECT_EQ(told().out_pages, 0U);
    EXPECT_THAT(told().why, HasSubstr("no process"));
}

TEST_F(Far, WhatIsUnmappedOutThereIsOutNoLonger) {
    run(800);
    tier_.held.clear();
    heat_ = HeatMap();
    std::vector<std::uint64_t> none(PageHeat::kTiers);
    for (int i = 0; i < 3; ++i) {
        now_ += seconds(10);
        keeper_.round({{.space = 7,
                        .process = {100, 5},
                        .target = 0,
                        .cgroup = "/a",
                        .heat = &heat_,
                        .ranges = &ranges_,
                        .pages_by_tier = &none,
                        .may_send = true}},
                      targets_, now_, [] { return true; });
    }
    EXPECT_EQ(told().out_pages, 0U);
    EXPECT_EQ(told().returned_pages, 0U);
}

TEST_F(Far, ItEndsEarlyWhenItIsToldTo) {
    may_go_on_ = false;
    run(200);
    EXPECT_TRUE(tier_.held.empty());
}

TEST_F(Far, ARateLimitHolds) {
    targets_[0].rate_limit = Bytes{2 << kPageShift};
    run(200);
    EXPECT_LE(tier_.held.size(), 200U * 2);
    EXPECT_GT(tier_.held.size(), 100U);
}

TEST_F(Far, OtherLimitsBeginAnew) {
    run(100);
    EXPECT_GT(tier_.held.size(), 0U);
    targets_[0].far->after = std::chrono::hours(1);
    const std::size_t before = tier_.held.size();
    run(100);
    EXPECT_LE(tier_.held.size(), before + kCount / 4) << "ages are what they were";
    targets_[0].far.reset();
    keeper_.round({}, targets_, now_, [] { return true; });
    EXPECT_TRUE(keeper_.status().targets.empty());
}

}  // namespace
}  // namespace memtide::agent
