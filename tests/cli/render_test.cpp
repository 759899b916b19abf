#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "cli/render/compositions.h"
#include "cli/render/fields.h"

namespace memtide::cli {
namespace {

TEST(Fields, WhatIsAbsentOrOfAnotherTypeIsADash) {
    const auto object = boost::json::parse(R"({"a": null, "b": "", "c": [1], "d": 268435456, "e": "x"})");
    EXPECT_EQ(text_of(object, "a"), "-");
    EXPECT_EQ(text_of(object, "b"), "-");
    EXPECT_EQ(text_of(object, "none"), "-");
    EXPECT_EQ(size_of(object, "d"), "256MiB");
    EXPECT_EQ(size_of(object, "e"), "-");
    EXPECT_EQ(number_of(object, "e"), 0);
    EXPECT_TRUE(items_of(object, "a").empty());
    EXPECT_EQ(text_of(boost::json::value(nullptr), "a"), "-");
}

TEST(Fields, TextCannotSteerTheTerminal) {
    const auto object = boost::json::parse(R"({"a": "x\u001b[2Jy\nz", "\u001b": 1})");
    EXPECT_EQ(text_of(object, "a"), "x?[2Jy?z");
}

TEST(Compositions, ProgressSaysWhatIsWaitedFor) {
    const auto composition =
        boost::json::parse(R"({"state": "Onlining", "waiting_for": "the agent of host0"})");
    EXPECT_EQ(render_progress(composition), "Onlining, waits for the agent of host0");
}

}  // namespace
}  // namespace memtide::cli
