#include <string>

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "common/json/json.h"

namespace memtide::json {
namespace {

std::string error_of(std::string_view text, Limits limits = {}) {
    const auto value = parse(text, limits);
    EXPECT_FALSE(value) << text;
    if (value) return {};
    EXPECT_EQ(value.error().code, ErrorCode::kInvalidArgument);
    return value.error().message;
}

TEST(JsonParse, GivesWhatWasWritten) {
    const std::string text =
        R"({"a":[1,-2,18446744073709551615,1.5,true,false,null,"x\u00e9\ud83d\ude00"],"":{},"b":{"a":1}})";
    const auto value = parse(text);
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_EQ(
        boost::json::serialize(*value),
        "{\"a\":[1,-2,18446744073709551615,1.5E0,true,false,null,\"x\xc3\xa9\xf0\x9f\x98\x80\"],\"\":{},"
        "\"b\":{\"a\":1}}");
}

TEST(JsonParse, LongTextsAndKeysSurvive) {
    const std::string key(5000, 'k');
    const std::string text(100'000, 't');
    const auto value = parse("{\"" + key + "\":\"" + text + "\"}");
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_EQ(value->as_object().at(key).as_string(), text);
}

TEST(JsonParse, RefusesAMemberGivenTwice) {
    EXPECT_EQ(error_of("{\"host\": \"a\",\n \"host\": \"b\"}"),
              "line 2, column 7: the member \"host\" is given twice");
    EXPECT_NE(error_of(R"({"a": 1, "\u0061": 2})"), "");
    EXPECT_TRUE(parse(R"([{"a": 1}, {"a": 2}, {"b": {"a": 3}, "a": 4}])"));
}

TEST(JsonParse, NamesLineAndColumnOfWhatIsNotJson) {
    EXPECT_TRUE(error_of("{\n  \"size\": 12x\n}").starts_with("line 2, column ")) << error_of("{\n 12x}");
    for (const char* text :
         {"", " ", "{", "[1,]", "{\"a\":}", "{a:1}", "'a'", "nul", "01", "1.", "[1] [2]", "\"\x01\"",
          "\"\xff\"", "\"\\ud800\"", "// c\n1", "NaN", "{\"a\":1,}", "\xef\xbb\xbf{}"})
        EXPECT_TRUE(error_of(text).starts_with("line ")) << text;
}

TEST(JsonParse, RefusesNumbersThatNoDoubleHolds) {
    EXPECT_NE(error_of("[1e999]"), "");
    EXPECT_NE(error_of("-1" + std::string(400, '0')), "");
    EXPECT_TRUE(parse("1e300"));
}

TEST(JsonParse, NamesThePlaceOfWhatIsNotUtf8) {
    for (const char* bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe6\xbc"}) {
        const auto value = parse(std::string("{\n \"a\": \"x") + bad + "\"}");
        ASSERT_FALSE(value) << bad;
        EXPECT_EQ(value.error().message, "line 2, column 9: this is not UTF-8");
    }
}

TEST(JsonParse, AMemberGivenTwiceUnderTwoSpellingsIsGivenTwice) {
    const auto value = parse(R"({"size": 1, "\u0073ize": 2})");
    ASSERT_FALSE(value);
    EXPECT_NE(value.error().message.find("\"size\" is given twice"), std::string::npos)
        << value.error().message;
}

TEST(JsonParse, RefusesDepthBeyondTheLimit) {
    const std::string deep = std::string(33, '[') + std::string(33, ']');
    EXPECT_NE(error_of(deep).find("nested too deeply"), std::string::npos) << error_of(deep);
    EXPECT_TRUE(parse(std::string_view(deep).substr(1, 64)));
    EXPECT_NE(error_of(std::string(500'000, '[')), "");
    EXPECT_NE(error_of(R"({"a":{"a":{"a":1}}})", {.bytes = 100, .depth = 2}), "");
}

TEST(JsonParse, RefusesTextBeyondTheLimit) {
    EXPECT_EQ(error_of("\"0123456789\"", {.bytes = 11}), "the text has 12 bytes, more than 11");
    EXPECT_TRUE(parse("\"0123456789\"", {.bytes = 12}));
}

}  // namespace
}  // namespace memtide::json
