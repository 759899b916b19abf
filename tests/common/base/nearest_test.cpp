#include "common/base/nearest.h"

#include <gtest/gtest.h>

namespace memtide {
namespace {

const std::set<std::string, std::less<>> kKnown = {"host", "id", "labels", "size"};

TEST(NearestName, UpToTwoEditsAreTakenForAMistake) {
    EXPECT_EQ(nearest_name("hots", kKnown), "host");
    EXPECT_EQ(nearest_name("label", kKnown), "labels");
    EXPECT_EQ(nearest_name("siize", kKnown), "size");
}

TEST(NearestName, FurtherAwayItIsAnotherWord) {
    EXPECT_EQ(nearest_name("tenant", kKnown), "");
    EXPECT_EQ(nearest_name("xy", kKnown), "") << "two edits turn anything into a word of two letters";
    EXPECT_EQ(nearest_name("host", {}), "");
    EXPECT_EQ(nearest_name(std::string(65, 'a'), {std::string(64, 'a')}), "") << "too long to compare";
}

}  // namespace
}  // namespace memtide
