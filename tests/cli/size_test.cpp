#include "cli/commands/size.h"

#include <string>

#include <gtest/gtest.h>

namespace memtide::cli {
namespace {

std::string size_refusal(std::string_view text) {
    const auto size = composition_size(text);
    return size ? "" : size.error().message;
}

TEST(Size, MultiplesOf256MiBCanBeGiven) {
    for (const char* text : {"256MiB", "1.5GiB", "2 GiB", "268435456", "1TiB"})
        EXPECT_EQ(size_refusal(text), "") << text;
}

TEST(Size, WhatWasMeantIsNamed) {
    for (const char* text : {"256", "256MB", "256M", "256m", "256mib"})
        EXPECT_TRUE(size_refusal(text).ends_with("did you mean 256MiB?")) << size_refusal(text);
    EXPECT_TRUE(size_refusal("1").ends_with("did you mean 1GiB?")) << size_refusal("1");
    EXPECT_TRUE(size_refusal("300MiB").ends_with("did you mean 512MiB?")) << size_refusal("300MiB");
}

TEST(Size, WhatIsNoSizeGetsNoGuess) {
    for (const char* text : {"abc", "", "0", "-256MiB", "1e9", "MiB", "99999999999TiB"}) {
        EXPECT_NE(size_refusal(text), "") << text;
        EXPECT_EQ(size_refusal(text).find("did you mean"), std::string::npos) << size_refusal(text);
    }
}

}  // namespace
}  // namespace memtide::cli
