#include "tiering-agent/balance/decision_log.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/log/log.h"

namespace memtide::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

class Decisions : public testing::Test {
  protected:
    Decisions() { EXPECT_TRUE(log::to_file(path_)); }
    ~Decisions() override { std::remove(path_.c_str()); }
    [[nodiscard]] std::string logged() const {
        std::stringstream text;
        text << std::ifstream(path_).rdbuf();
        return text.str();
    }
    const std::string path_ = testing::TempDir() + "decisions." + std::to_string(::getpid());
    DecisionLog decisions_;
    DecisionLog::Time now_{std::chrono::hours(1)};
    DecisionLog::Exchange exchange_{.target = "redis",
                                    .fast = "dram",
                                    .slow = "cxl",
                                    .promoted_pages = 256,
                                    .demoted_pages = 256,
                                    .hit_before = 0.25,
                                    .hit_after = 0.5};
};

TEST_F(Decisions, AreToldInSumAndNotTooOften) {
    decisions_.note(exchange_);
    decisions_.flush(now_);
    EXPECT_THAT(logged(),
                HasSubstr("info event=\"pages moved\" target=redis fast=dram slow=cxl up=1MiB down=1MiB "
                          "failed=0B exchanges=1 hit_before=0.250000 hit_after=0.500000 "
                          "reason=\"warmer for colder\"\n"));
    exchange_.promoted_pages = 0;
    exchange_.failed_pages = 1;
    exchange_.hit_after = 0.75;
    decisions_.note(exchange_);
    decisions_.note(exchange_);
    decisions_.flush(now_ + std::chrono::seconds(9));
    EXPECT_THAT(logged(), Not(HasSubstr("exchanges=2")));
    decisions_.flush(now_ + DecisionLog::kEvery);
    EXPECT_THAT(logged(),
                HasSubstr("up=0B down=2MiB failed=8KiB exchanges=2 hit_before=0.250000 hit_after=0.750000 "
                          "reason=\"makes room\"\n"));
}

TEST_F(Decisions, WhereNothingMovesNothingIsSaid) {
    decisions_.flush(now_);
    EXPECT_EQ(logged(), "");
}

TEST_F(Decisions, HaveAReason) {
    EXPECT_EQ(DecisionLog::reason_of(exchange_), "warmer for colder");
    exchange_.demoted_pages = 0;
    EXPECT_EQ(DecisionLog::reason_of(exchange_), "fills free memory");
    exchange_.promoted_pages = 0;
    EXPECT_EQ(DecisionLog::reason_of(exchange_), "nothing could be moved");
}

}  // namespace
}  // namespace memtide::agent
