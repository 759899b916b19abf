#include <gtest/gtest.h>

#include "common/json/json.h"

namespace memtide::json {
namespace {

constexpr auto kIgnored = Reader::Unknown::kIgnored;
constexpr auto kRefused = Reader::Unknown::kRefused;

// A text and a reader of it.
struct Given {
    explicit Given(std::string_view text) : value(parse(text).value()), reader(value) {}
    [[nodiscard]] Object root() const { return reader.root().object(); }
    [[nodiscard]] std::string mistakes(Reader::Unknown unknown = kIgnored) const {
        const auto good = reader.check(unknown);
        return good ? "" : good.error().message;
    }
    boost::json::value value;
    Reader reader;
};

TEST(JsonReader, ReadsTypedValues) {
    const Given given(R"({"host": "host0", "size": 268435456, "more": "256MiB", "force": true, "node": -1,
                          "serial": "0x4d54000100000001", "ratio": 2, "state": "online", "list": [1, 2],
                          "exact": 1e3, "big": 18446744073709551615})");
    const Object root = given.root();
    EXPECT_EQ(root.require("host").name(), "host0");
    EXPECT_EQ(root.require("host").string(), "host0");
    EXPECT_EQ(root.require("size").bytes(), mebibytes(256));
    EXPECT_EQ(root.require("more").bytes(), mebibytes(256));
    EXPECT_TRUE(root.require("force").boolean());
    EXPECT_EQ(root.require("node").integer<int>(), -1);
    EXPECT_EQ(root.require("serial").serial().value, 0x4d54000100000001U);
    EXPECT_EQ(root.require("ratio").number(), 2.0);
    EXPECT_EQ(root.require("state").one_of({"absent", "online"}), "online");
    EXPECT_EQ(root.require("exact").integer<std::uint16_t>(), 1000);
    EXPECT_EQ(root.require("big").integer<std::uint64_t>(), ~std::uint64_t{0});
    const auto list = root.require("list").list();
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list[1].path(), "$.list[1]");
    EXPECT_FALSE(root.get("absent"));
    EXPECT_EQ(given.mistakes(kRefused), "");
}

TEST(JsonReader, ReportsEveryMistakeWithItsPath) {
    const Given given(R"({"host": 7, "compositions": [{"size": -5}, {"size": "5MB"}, {"size": null}]})");
    const Object root = given.root();
    EXPECT_EQ(root.require("host").string(), "");
    for (const Value& item : root.require("compositions").list()) (void)item.object().require("size").bytes();
    const std::string mistakes = given.mistakes();
    EXPECT_NE(mistakes.find("$.host: must be a text"), std::string::npos) << mistakes;
    EXPECT_NE(mistakes.find("$.compositions[0].size: must not be negative"), std::string::npos) << mistakes;
    EXPECT_NE(mistakes.find("$.compositions[1].size: must be a size: "), std::string::npos) << mistakes;
    EXPECT_NE(mistakes.find("$.compositions[2].size: is missing"), std::string::npos) << mistakes;
}

TEST(JsonReader, IntegersOutOfRangeGiveADefaultWithinIt) {
    const Given given(R"({"a": 300, "b": -1, "c": 1.5, "d": "1", "e": 9223372036854775808, "f": 1e30})");
    const Object root = given.root();
    EXPECT_EQ(root.require("a").integer<std::uint8_t>(), 0);
    EXPECT_EQ(root.require("b").integer<std::uint64_t>(1), 1U);
    EXPECT_EQ(root.require("c").integer<int>(5, 10), 5);
    EXPECT_EQ(root.require("d").integer<int>(-10, -5), -5);
    EXPECT_EQ(root.require("e").integer<std::int64_t>(), 0);
    EXPECT_EQ(root.require("f").integer<std::uint64_t>(), 0U);
    const std::string mistakes = given.mistakes();
    EXPECT_NE(mistakes.find("$.a: must be from 0 to 255"), std::string::npos) << mistakes;
    EXPECT_NE(mistakes.find("$.b: must be an integer of at least 1"), std::string::npos) << mistakes;
    for (const char* path : {"$.c: must be an integer", "$.d: ", "$.e: ", "$.f: "})
        EXPECT_NE(mistakes.find(path), std::string::npos) << mistakes;
}

TEST(JsonReader, KnowsNegativeValuesHoweverTheyAreWritten) {
    const Given given(R"([-1, -0.5, " -256MiB", 0, 1, "256MiB", true, -9223372036854775808])");
    const auto list = given.reader.root().list();
    for (const std::size_t i : {0U, 1U, 2U, 7U}) EXPECT_TRUE(list[i].is_negative()) << i;
    for (const std::size_t i : {3U, 4U, 5U, 6U}) EXPECT_FALSE(list[i].is_negative()) << i;
}

TEST(JsonReader, SizesBeyondTheirRangeAreRefused) {
    const Given given(R"({"a": 18446744073709551615, "b": 1.5, "c": [], "d": "lots"})");
    for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(given.root().require(name).bytes().value, 0U);
    const std::string mistakes = given.mistakes();
    for (const char* path : {"$.a: ", "$.b: ", "$.c: ", "$.d: "})
        EXPECT_NE(mistakes.find(path), std::string::npos) << mistakes;
}

TEST(JsonReader, UnknownMembersAreRefusedWithAHintOrIgnored) {
    const Given given(R"({"host": "a", "tll": "1h", "labels": {"any": "thing"}, "nested": {"x": 1}})");
    const Object root = given.root();
    (void)root.get("host");
    (void)root.get("ttl");
    for (const auto& [name, label] : root.require("labels").object().entries()) (void)label.string();
    (void)root.require("nested").object().get("y");
    EXPECT_EQ(given.mistakes(kIgnored), "");
    const std::string mistakes = given.mistakes(kRefused);
    EXPECT_NE(mistakes.find("$.tll: is not known; did you mean \"ttl\"?"), std::string::npos) << mistakes;
    EXPECT_NE(mistakes.find("$.nested.x: is not known"), std::string::npos) << mistakes;
    EXPECT_EQ(mistakes.find("any"), std::string::npos) << mistakes;
}

TEST(JsonReader, NullCountsAsAbsentButIsThere) {
    const Given given(R"({"a": null})");
    EXPECT_FALSE(given.root().get("a"));
    EXPECT_TRUE(given.root().has("a"));
    EXPECT_FALSE(given.root().has("b"));
}

TEST(JsonReader, WhatIsNotAnObjectIsOneMistake) {
    const Given given("[]");
    (void)given.root().require("host").string();
    EXPECT_EQ(given.mistakes(kRefused), "$: must be an object");
}

TEST(JsonReader, PathsQuoteStrangeNamesAndShortenLongOnes) {
    const Given given("{\"a \\\"b\\n\": 1, \"" + std::string(1000, 'x') + "\": 2, \"\": 3}");
    for (const auto& [name, value] : given.root().entries()) (void)value.boolean();
    const std::string mistakes = given.mistakes();
    EXPECT_NE(mistakes.find("$[\"a \\\"b\\u000a\"]: must be true or false"), std::string::npos) << mistakes;
    EXPECT_NE(mistakes.find("$[\"\"]: "), std::string::npos) << mistakes;
    EXPECT_LT(mistakes.size(), 400U);
}

TEST(JsonReader, ManyMistakesAreCutShort) {
    std::string text = "[0";
    for (int i = 1; i < 1000; ++i) text += ",0";
    const Given given(text + "]");
    for (const Value& item : given.reader.root().list()) (void)item.string();
    EXPECT_TRUE(given.mistakes().ends_with("; and 980 more")) << given.mistakes();
}

TEST(JsonReader, ListsAndTextsAreBounded) {
    const Given given(R"({"list": [1, 2, 3], "text": "abcd"})");
    EXPECT_TRUE(given.root().require("list").list(2).empty());
    EXPECT_EQ(given.root().require("text").string(3), "");
    const std::string mistakes = given.mistakes();
    EXPECT_NE(mistakes.find("$.list: must not have more than 2 items"), std::string::npos) << mistakes;
    EXPECT_NE(mistakes.find("$.text: must not be longer than 3 bytes"), std::string::npos) << mistakes;
}

TEST(JsonReader, ChoicesAreListed) {
    const Given given(R"({"state": "gone"})");
    EXPECT_EQ(given.root().require("state").one_of({"absent", "online"}), "absent");
    EXPECT_EQ(given.mistakes(), "$.state: must be one of absent, online");
}

}  // namespace
}  // namespace memtide::json
