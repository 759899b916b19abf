#include "common/json/write.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gtest/gtest.h>

namespace memtide::json {
namespace {

TEST(Write, DoublesArePlainDecimals) {
    EXPECT_EQ(write(boost::json::value(1.5)), "1.5");
    EXPECT_EQ(write(boost::json::value(0.00025)), "0.00025");
    EXPECT_EQ(write(boost::json::value(-2.0)), "-2");
    EXPECT_EQ(write(boost::json::value(1e21)), "1000000000000000000000");
}

TEST(Write, WhatIsNoNumberIsNull) {
    EXPECT_EQ(write(boost::json::value(std::numeric_limits<double>::infinity())), "null");
    EXPECT_EQ(write(boost::json::value(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(Write, EveryDoubleReadsBackAsItself) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; ++i) {
        const std::uint64_t bits = random();
        double number = 0;
        std::memcpy(&number, &bits, sizeof number);
        if (!std::isfinite(number)) continue;
        const std::string text = write(boost::json::value(number));
        EXPECT_EQ(text.find_first_not_of("-0123456789."), std::string::npos) << text;
        EXPECT_EQ(std::strtod(text.c_str(), nullptr), number) << text;
    }
    for (const double number :
         {std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()})
        EXPECT_EQ(std::strtod(write(boost::json::value(number)).c_str(), nullptr), number);
}

TEST(Write, IntegersKeepAllTheirDigits) {
    EXPECT_EQ(write(boost::json::value(std::numeric_limits<std::uint64_t>::max())), "18446744073709551615");
    EXPECT_EQ(write(boost::json::value(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808");
}

TEST(Write, TextsAreEscapedAsJsonAsksFor) {
    EXPECT_EQ(write(boost::json::value("a\"b\\c\n\r\t\x01 \xc3\xa4")), R"("a\"b\\c\n\r\t\u0001 )"
                                                                       "\xc3\xa4\"");
}

TEST(Write, NestedValuesReadBackAsThemselves) {
    const boost::json::value value =
        boost::json::parse(R"({"a":[1,-2,null,true,false,{"b":"c\u0000d"}],"":{},"e":[]})");
    EXPECT_EQ(boost::json::parse(write(value)), value);
}

TEST(Write, WriterPutsWhatATreeOfTheSameValuesWould) {
    std::string text = "> ";
    Writer out(text);
    out.open_object();
    out.member("a\n", std::string("b\"c"));
    out.member("literal", "text");
    out.member("small", std::uint8_t{7});
    out.member("negative", -5);
    out.member("large", std::numeric_limits<std::uint64_t>::max());
    out.member("real", 0.25);
    out.member("flag", true);
    out.open_array("empty");
    out.close();
    out.open_array("list");
    out.item(1);
    out.open_object();
    out.close();
    out.open_array();
    out.item(false);
    out.close();
    out.close();
    out.open_object("inner");
    out.member("x", 1U);
    out.close();
    out.close();
    EXPECT_EQ(text,
              R"(> {"a\n":"b\"c","literal":"text","small":7,"negative":-5,"large":18446744073709551615,)"
              R"("real":0.25,"flag":true,"empty":[],"list":[1,{},[false]],"inner":{"x":1}})");
}

}  // namespace
}  // namespace memtide::json
