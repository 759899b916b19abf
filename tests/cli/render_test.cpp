#include <algorithm>

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
    EXPECT_EQ(text_of(object, "a"), "x\\x1b[2Jy\\nz");
}

TEST(Compositions, ProgressSaysWhatIsWaitedFor) {
    const auto composition =
        boost::json::parse(R"({"state": "Onlining", "waiting_for": "the agent of host0"})");
    EXPECT_EQ(render_progress(composition), "Onlining, waits for the agent of host0");
}

TEST(Compositions, LabelKeysAndUndoneStepsCannotSteerTheTerminal) {
    const auto composition = boost::json::parse(
        R"({"id": "c-1", "labels": {"\u001b[31m": "\u001b[2J"}, "undone": ["\u001b[H"],
            "reason": {"code": "\u001b", "detail": "\u009b2J"}})");
    const std::string text = render_composition(composition);
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find("\u009b"), std::string::npos) << text;
    EXPECT_NE(text.find("\\x1b[31m=\\x1b[2J"), std::string::npos) << text;
}

TEST(Compositions, OfManyExclusionsTheFirstOnesAreShown) {
    boost::json::array many(25,
                            boost::json::parse(R"({"device": "d", "constraint": "size", "detail": "x"})"));
    const std::string text = render_excluded(many);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
    EXPECT_NE(text.find("and 5 more"), std::string::npos) << text;
    EXPECT_EQ(render_excluded({}), "");
}

TEST(Compositions, NotesAreCutSoThatLinesFit) {
    auto composition = boost::json::parse(R"({"id": "c-7f3k2m9q1x", "host": "host0", "size": 268435456,
        "state": "Failed", "device": "mld0", "ld": 3, "reason": {"code": "bind-refused", "detail": ""}})");
    composition.at("reason").at("detail") = std::string(200, 'x');
    const std::string text = render_compositions({composition}, 100);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
        EXPECT_LE(end - begin, 100U) << text;
    EXPECT_NE(text.find("xxx..."), std::string::npos) << text;
    EXPECT_NE(render_composition(composition).find(std::string(200, 'x')), std::string::npos);
}

}  // namespace
}  // namespace memtide::cli
