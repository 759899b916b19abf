#include "tiering-agent/policy/cold_pages.h"

#include <limits>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

constexpr std::uint64_t kFirst = 10 * kPagesPerHuge;

class Cold : public testing::Test {
  protected:
    // So many times a tick passes, with four windows in it, in which the pages of `touched` are touched.
    void pass(unsigned ticks, const std::set<std::size_t>& touched = {}) {
        for (unsigned i = 0; i < ticks; ++i) {
            for (int window = 0; window < 4; ++window) {
                std::vector<PageSeen> seen(count_);
                for (std::size_t p = 0; p < count_; ++p)
                    if (!away_.contains(p)) seen[p] = {tier_, touched.contains(p), huge_};
                heat_.observe(kFirst, seen);
            }
            const ColdPages::Returns returns = cold_->note(heat_, 1, hints_);
            returned_ += returns.pages;
            soon_ += returns.soon;
        }
    }
    std::vector<std::uint64_t> offered(unsigned least = 0, unsigned most = ColdPages::kAges - 1) const {
        std::vector<std::uint64_t> pages;
        cold_->for_each(tier_, least, most, [&](const ColdPages::Unit& unit) {
            pages.push_back(unit.page - kFirst);
            return true;
        });
        return pages;
    }
    void send_all() {
        for (const std::uint64_t page : offered()) {
            cold_->note_out({kFirst + page, huge_ ? kPagesPerHuge : 1U});
            for (std::size_t i = page; i < page + (huge_ ? kPagesPerHuge : 1); ++i) away_.insert(i);
        }
        heat_.forget(kFirst, kFirst + (huge_ ? count_ : 0));
    }
    // Puts all in the state in which the group is trusted.
    void begin_trusted() {
        pass(13);
        send_all();
        pass(ColdPages::kTicks);
    }

    HeatMap heat_;
    std::optional<ColdPages> cold_{true};
    std::vector<HintRange> hints_{};
    std::size_t count_ = kPagesPerHuge;
    std::uint8_t tier_ = 1;
    bool huge_ = false;
    std::set<std::size_t> away_;
    std::uint64_t returned_ = 0;
    std::uint64_t soon_ = 0;
};

TEST_F(Cold, WhatItsProcessSaysToBeColdGoesAtOnceUnlessItIsTouched) {
    cold_.emplace(false);
    pass(5);
    ASSERT_TRUE(offered().empty());
    hints_ = {{kFirst + 10, kFirst + 20, Hint::kCold}, {kFirst + 30, kFirst + 40, Hint::kHot}};
    pass(1, {15});
    EXPECT_EQ(offered(), (std::vector<std::uint64_t>{10, 11, 12, 13, 14, 16, 17, 18, 19}));
}

// Where reads are not seen its word is tried with a few pages, too.
TEST_F(Cold, WhatIsSaidToBeColdIsProbedWhereReadsAreNotSeen) {
    pass(5);
    hints_ = {{kFirst, kFirst + kPagesPerHuge, Hint::kCold}};
    pass(1);
    EXPECT_EQ(offered().size(), ColdPages::kProbes);
}

TEST_F(Cold, NothingIsColdAtFirst) {
    pass(ColdPages::kTicks);
    EXPECT_TRUE(offered().empty());
    EXPECT_EQ(cold_->histogram(1).resident, kPagesPerHuge);
    EXPECT_EQ(cold_->histogram(1).working_set, kPagesPerHuge);
}

TEST_F(Cold, WhereReadsAreSeenAllThatIsUntouchedMayGo) {
    cold_.emplace(false);
    pass(20, {3, 5});
    EXPECT_EQ(offered().size(), kPagesPerHuge - 2);
    EXPECT_EQ(cold_->histogram(1).cold(), kPagesPerHuge - 2);
    EXPECT_EQ(cold_->histogram(1).working_set, 2U);
    EXPECT_EQ(cold_->histogram(0).cold(), 0U) << "another tier";
}

TEST_F(Cold, WhereTheyAreNotAFewGoFirst) {
    pass(20, {3, 5});
    EXPECT_EQ(offered().size(), ColdPages::kProbes);
    send_all();
    pass(1);
    EXPECT_TRUE(offered().empty()) << "until it is known what becomes of them";
    pass(ColdPages::kTicks, {3, 5});
    EXPECT_EQ(offered().size(), kPagesPerHuge - 2 - ColdPages::kProbes);
    EXPECT_EQ(cold_->out_pages(), ColdPages::kProbes);
}

TEST_F(Cold, AProbeThatComesBackKeepsTheOthersHere) {
    pass(20);
    send_all();
    away_.erase(away_.begin());
    pass(1);
    EXPECT_EQ(returned_, 1U);
    EXPECT_EQ(soon_, 1U);
    pass(2 * ColdPages::kTicks - 1);
    EXPECT_TRUE(offered().empty());
    pass(1);
    EXPECT_EQ(offered().size(), ColdPages::kProbes) << "then others are tried";
    const std::uint64_t probe = offered().back();
    send_all();
    away_.erase(probe);
    pass(4 * ColdPages::kTicks);
    EXPECT_TRUE(offered().empty()) << "each time it takes twice as long";
}

TEST_F(Cold, WhatComesBackTooSoonHasToBeUntouchedForTwiceAsLong) {
    cold_.emplace(false);
    pass(13);
    send_all();
    const std::size_t back = 7;
    away_.erase(back);
    pass(1);
    EXPECT_EQ(soon_, 1U);
    pass(ColdPages::kTicks + 1);
    EXPECT_TRUE(offered().empty());
    pass(ColdPages::kTicks);
    EXPECT_EQ(offered(), std::vector<std::uint64_t>{back});
    send_all();
    pass(3 * ColdPages::kTicks);
    away_.erase(back);
    pass(1);
    EXPECT_EQ(returned_, 2U);
    EXPECT_EQ(soon_, 1U) << "it was out for longer than it had to be cold";
}

TEST_F(Cold, ATrustedGroupIsTrustedUntilSomethingComesBack) {
    begin_trusted();
    EXPECT_GT(offered().size(), ColdPages::kProbes);
    send_all();
    EXPECT_EQ(cold_->out_pages(), kPagesPerHuge);
    away_.erase(100);
    pass(4);
    EXPECT_EQ(cold_->out_pages(), kPagesPerHuge - 1);
    EXPECT_TRUE(offered().empty());
}

TEST_F(Cold, TheColdestCanBeTold) {
    cold_.emplace(false);
    pass(10);
    pass(8, {0, 1, 2, 3});
    pass(13);
    const ColdPages::Histogram histogram = cold_->histogram(1);
    EXPECT_EQ(histogram.cold(), kPagesPerHuge);
    const unsigned oldest = histogram.age_of_coldest(10);
    EXPECT_EQ(offered(oldest).size(), kPagesPerHuge - 4);
    EXPECT_LT(histogram.age_of_coldest(kPagesPerHuge), oldest);
    EXPECT_EQ(offered(0, oldest - 1), (std::vector<std::uint64_t>{0, 1, 2, 3}));
    EXPECT_EQ(histogram.age_of_coldest(1'000'000), histogram.age_of_coldest(kPagesPerHuge));
}

TEST_F(Cold, WhatIsKeptIsLeftAloneForLong) {
    cold_.emplace(false);
    pass(13);
    cold_->note_kept({kFirst + 4, 1});
    pass(15 * ColdPages::kTicks);
    EXPECT_EQ(offered().size(), kPagesPerHuge - 1);
    pass(ColdPages::kTicks);
    EXPECT_EQ(offered().size(), kPagesPerHuge);
}

TEST_F(Cold, WhatIsUnmappedWhileItIsOutIsForgotten) {
    begin_trusted();
    std::vector<std::uint64_t> out;
    const std::uint64_t next = cold_->out_from(0, 3, out);
    EXPECT_EQ(out.size(), 3U);
    EXPECT_EQ(cold_->out_from(next, 100, out), 0U);
    EXPECT_EQ(out.size(), ColdPages::kProbes);
    for (const std::uint64_t page : out) cold_->note_gone(page);
    EXPECT_EQ(cold_->out_pages(), 0U);
    away_.clear();
    pass(1);
    EXPECT_EQ(returned_, 0U) << "what is mapped there later is new";
}

TEST_F(Cold, HugePagesGoAsAWhole) {
    huge_ = true;
    pass(13);
    EXPECT_EQ(offered(), std::vector<std::uint64_t>{0});
    EXPECT_EQ(cold_->histogram(1).cold(), kPagesPerHuge);
    send_all();
    EXPECT_EQ(cold_->out_pages(), kPagesPerHuge);
    huge_ = false;  // it comes back in pieces
    away_.erase(17);
    pass(1);
    EXPECT_EQ(returned_, 1U);
    EXPECT_EQ(cold_->out_pages(), kPagesPerHuge - 1);
    away_.clear();
    huge_ = true;  // and the kernel makes one of them
    pass(1);
    EXPECT_EQ(cold_->out_pages(), 0U);
    EXPECT_EQ(returned_, 1U) << "its process did not ask for them";
}

TEST_F(Cold, MemoryIsThatOfWhatIsThere) {
    pass(1);
    EXPECT_GT(cold_->memory(), 2U * kPagesPerHuge);
    heat_.forget(0, std::numeric_limits<std::uint64_t>::max());
    cold_->note(heat_, 1);
    EXPECT_LT(cold_->memory(), 2U * kPagesPerHuge);
}

}  // namespace
}  // namespace memtide::agent
