// The whole policy of the far tier beside generated loads: windows, ages, probes and rates, as the agent has
// them. Time is simulated; each page is touched at random at a rate of its own.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tiering-agent/policy/cold_pages.h"
#include "tiering-agent/policy/far_pace.h"

namespace memtide::agent {
namespace {

class FarLoad {
  public:
    struct Page {
        double reads = 0;   // a second
        double writes = 0;  // likewise; all that a blind tracker sees
    };
    FarLoad(std::vector<Page> pages, bool sees_reads)
        : pages_(std::move(pages)),
          out_(pages_.size(), false),
          sees_reads_(sees_reads),
          cold_(!sees_reads),
          pace_({.after = std::chrono::seconds(60), .refaults = 0.01, .sees_reads = sees_reads}),
          next_read_(pages_.size()),
          next_write_(pages_.size()) {
        for (std::size_t i = 0; i < pages_.size(); ++i) schedule(i);
    }

    void set(std::vector<Page> pages) {
        pages_ = std::move(pages);
        for (std::size_t i = 0; i < pages_.size(); ++i) schedule(i);
    }
    // Every other second a window, of which the agent sees half.
    void run(unsigned seconds) {
        most_returns_ = 0;
        returns_ = 0;
        for (unsigned second = 0; second < seconds; ++second, ++now_) {
            if (now_ % 2 == 0) window();
            if (now_ % 8 == 0) {
                const ColdPages::Returns returns = cold_.note(heat_, 1);
                since_.returned_soon += returns.soon;
            }
            if (now_ % 5 == 4) step();
        }
    }

    [[nodiscard]] std::size_t out() const { return std::size_t(std::ranges::count(out_, true)); }
    [[nodiscard]] std::size_t out(std::size_t first, std::size_t count) const {
        const auto begin = out_.begin() + static_cast<std::ptrdiff_t>(first);
        return std::size_t(std::count(begin, begin + static_cast<std::ptrdiff_t>(count), true));
    }
    [[nodiscard]] std::uint64_t returns() const { return returns_; }        // of the last run
    [[nodiscard]] double most_per_minute() const { return most_returns_; }  // likewise
    [[nodiscard]] double allowed() const { return pace_.returns_allowed(); }
    std::vector<std::uint64_t> sent_by_minute;

  private:
    // The first window in which the page is touched from now on, at this many touches a second.
    double next(double rate) {
        if (rate == 0) return 1e18;
        return double(now_) - std::log(std::uniform_real_distribution<double>(1e-12, 1)(random_)) / rate;
    }
    void schedule(std::size_t page) {
        next_read_[page] = next(pages_[page].reads);
        next_write_[page] = next(pages_[page].writes);
    }
    // What was touched in these two seconds; the agent sees the first of them.
    void window() {
        const double begin = double(now_);
        seen_.assign(pages_.size(), {});
        for (std::size_t i = 0; i < pages_.size(); ++i) {
            const double first = std::min(next_read_[i], next_write_[i]);
            const double visible = sees_reads_ ? first : next_write_[i];
            const bool touched = first < begin + 2;
            const bool was_seen = visible < begin + 1;
            if (touched) schedule_after(i);
            if (out_[i] && touched) {
                out_[i] = false;
                ++since_.returned;
                ++returns_;
            }
            if (!out_[i]) seen_[i] = {1, was_seen, false};
        }
        heat_.observe(0, seen_);
    }
    void schedule_after(std::size_t page) {
        now_ += 2;
        if (next_read_[page] < double(now_)) next_read_[page] = next(pages_[page].reads);
        if (next_write_[page] < double(now_)) next_write_[page] = next(pages_[page].writes);
        now_ -= 2;
    }
    void step() {
        const ColdPages::Histogram histogram = cold_.histogram(1);
        since_.seconds = 5;
        since_.pressure = 0;
        since_.resident = histogram.resident;
        since_.working_set = histogram.working_set;
        since_.cold = histogram.cold();
        since_.room = pages_.size();
        const std::uint64_t most = pace_.note(since_);
        most_returns_ = std::max(most_returns_, pace_.returns_per_minute());
        since_ = {};
        const unsigned age = histogram.age_of_coldest(most);
        std::vector<std::uint64_t> units;
        for (const auto& [least, oldest] : {std::pair{age + 1, 255U}, std::pair{age, age}})
            cold_.for_each(1, least, oldest, [&](const ColdPages::Unit& unit) {
                if (units.size() >= most) return false;
                units.push_back(unit.page);
                return true;
            });
        for (const std::uint64_t page : units) {
            cold_.note_out({page, 1});
            heat_.forget(page, page + 1);
            out_[page] = true;
        }
        since_.sent = units.size();
        if (sent_by_minute.size() <= now_ / 60) sent_by_minute.resize(now_ / 60 + 1);
        sent_by_minute[now_ / 60] += units.size();
    }

    std::vector<Page> pages_;
    std::vector<bool> out_;
    bool sees_reads_;
    HeatMap heat_;
    ColdPages cold_;
    FarPace pace_;
    FarPace::Interval since_;
    std::uint64_t now_ = 0;
    std::uint64_t returns_ = 0;
    double most_returns_ = 0;
    std::mt19937 random_{17};
    std::vector<double> next_read_;  // seconds, of each page
    std::vector<double> next_write_;
    std::vector<PageSeen> seen_;
};

constexpr std::size_t kPages = 4'096;

std::vector<FarLoad::Page> halves(FarLoad::Page first, FarLoad::Page second) {
    std::vector<FarLoad::Page> pages(kPages, second);
    std::fill_n(pages.begin(), kPages / 2, first);
    return pages;
}

TEST(FarSimulation, AColdHalfGoesAndStaysAndNothingElseDoes) {
    FarLoad load(halves({.writes = 0.5}, {}), true);
    load.run(900);
    EXPECT_GT(load.out(kPages / 2, kPages / 2), 0.98 * kPages / 2);
    EXPECT_LT(load.out(0, kPages / 2), 0.01 * kPages);
    load.run(600);
    EXPECT_LT(load.most_per_minute(), load.allowed());
    EXPECT_EQ(load.sent_by_minute.back(), 0U) << "and then there is peace";
}

TEST(FarSimulation, AlsoByATrackerThatSeesNoReads) {
    FarLoad load(halves({.writes = 0.5}, {}), false);
    load.run(1'500);
    EXPECT_GT(load.out(kPages / 2, kPages / 2), 0.98 * kPages / 2);
    EXPECT_LT(load.most_per_minute(), load.allowed());
}

// To a blind tracker both halves look cold.
TEST(FarSimulation, WhatIsOnlyReadIsFoundOutForLittle) {
    FarLoad load(halves({.reads = 0.5}, {}), false);
    load.run(1'800);
    EXPECT_GT(load.out(kPages / 2, kPages / 2), 0.9 * kPages / 2);
    EXPECT_LT(load.out(0, kPages / 2), 0.02 * kPages / 2);
    EXPECT_LT(double(load.returns()), 0.02 * kPages / 2 * 4) << "a probe or a few of each 2 MiB";
    load.run(1'800);
    EXPECT_LT(load.most_per_minute(), 2 * load.allowed());
}

// All is touched from time to time, and the far tier can only lose.
TEST(FarSimulation, ALoadThatIsLukewarmIsLeftAloneWithinItsLimit) {
    FarLoad load(std::vector<FarLoad::Page>(kPages, {.writes = 1.0 / 100}), true);
    load.run(1'200);
    load.run(1'800);
    EXPECT_LT(double(load.returns()) / 30, 1.5 * load.allowed());
    EXPECT_LT(load.out(), 0.1 * kPages);
}

TEST(FarSimulation, AChangeOfPhaseStopsItAndItGoesOnAfterwards) {
    FarLoad load(halves({.writes = 0.5}, {}), true);
    load.run(1'200);
    load.set(halves({}, {.writes = 0.5}));
    const std::size_t sent_before = load.sent_by_minute.size();
    load.run(120);
    EXPECT_GT(load.returns(), 0.9 * kPages / 2) << "that is what its process wants";
    for (std::size_t i = sent_before; i < load.sent_by_minute.size(); ++i)
        EXPECT_LT(load.sent_by_minute[i], 100U) << "minute " << i;
    load.run(600);
    load.run(1'800);
    EXPECT_GT(load.out(0, kPages / 2), 0.95 * kPages / 2);
    EXPECT_LT(load.most_per_minute(), load.allowed());
}

// Rates from once in two seconds to never: more of it goes the rarer it is touched, without swings.
TEST(FarSimulation, ASlopeOfRatesComesToRest) {
    std::vector<FarLoad::Page> pages(kPages);
    for (std::size_t i = 0; i < kPages; ++i)
        pages[i].writes = 0.5 * std::pow(10.0, -6.0 * double(i / 512) / double(kPages / 512));
    FarLoad load(pages, true);
    load.run(2'400);
    const std::size_t before = load.out();
    load.run(2'400);
    EXPECT_LT(double(load.returns()) / 40, 1.2 * load.allowed());
    EXPECT_NEAR(double(load.out()), double(before), 0.1 * kPages);
    EXPECT_GT(load.out(kPages * 3 / 4, kPages / 4), 0.9 * kPages / 4);
    EXPECT_LT(load.out(0, kPages / 4), 0.01 * kPages);
}

}  // namespace
}  // namespace memtide::agent
