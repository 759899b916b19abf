#include "cli/commands/size.h"

#include <string>

#include <gtest/gtest.h>

namespace memtide::cli {
namespace {

std::string refusal_of(std::string_view text) {
    const auto size = composition_size(text);
    return size ? "" : size.error().message;
}

TEST(Size, MultiplesOf256MiBCanBeGiven) {
    for (const char* text : {"256MiB", "1.5GiB", "2 GiB", "268435456", "1TiB"})
        EXPECT_EQ(refusal_of(text), "") << text;
}

TEST(Size, WhatWasMeantIsNamed) {
    for (const char* text : {"256", "256MB", "256M", "256m", "256mib"})
        EXPECT_TRUE(refusal_of(text).ends_with("did you mean 256MiB?")) << refusal_of(text);
    EXPECT_TRUE(refusal_of("1").ends_with("did you mean 1GiB?")) << refusal_of("1");
    EXPECT_TRUE(refusal_of("300MiB").ends_with("did you mean 512MiB?")) << refusal_of("300MiB");
}

TEST(Size, WhatIsNoSizeGetsNoGuess) {
    for (const char* text : {"abc", "", "0", "-256MiB", "1e9", "MiB", "99999999999TiB"}) {
        EXPECT_NE(refusal_of(text), "") << text;
        EXPECT_EQ(refusal_of(text).find("did you mean"), std::string::npos) << refusal_of(text);
    }
}

}  // namespace
}  // namespace memtide::cli
