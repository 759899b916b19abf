#include <gtest/gtest.h>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"

namespace memtide {
namespace {

TEST(Bytes, TextWithBinaryUnitsIsRead) {
    EXPECT_EQ(parse_bytes("268435456"), mebibytes(256));
    EXPECT_EQ(parse_bytes("256MiB"), mebibytes(256));
    EXPECT_EQ(parse_bytes(" 1.5 GiB "), mebibytes(1536));
    EXPECT_EQ(parse_bytes("0"), Bytes{0});
    EXPECT_EQ(parse_bytes("9223372036854775807"), Bytes{9223372036854775807U});
}

TEST(Bytes, WhatIsNotASizeIsRefusedWithTheReason) {
    const auto refusal = [](std::string_view text) { return parse_bytes(text).error().message; };
    EXPECT_EQ(refusal("256MB"), "\"256MB\" is not a size: use a binary unit, such as MiB or GiB");
    EXPECT_EQ(refusal("-1"), "\"-1\" is not a size: it is negative");
    EXPECT_EQ(refusal(""), "\"\" is not a size: write it as bytes or as in \"256MiB\"");
    EXPECT_EQ(refusal("1.2.3MiB"), "\"1.2.3MiB\" is not a size: the number cannot be read");
    EXPECT_EQ(refusal("0.3B"), "\"0.3B\" is not a size: it is not a whole number of bytes");
    EXPECT_EQ(refusal("8388608TiB"), "\"8388608TiB\" is not a size: it is larger than 8 EiB");
    EXPECT_EQ(refusal("99999999999999999999"),
              "\"99999999999999999999\" is not a size: it is larger than 8 EiB");
    EXPECT_EQ(refusal("1e3"), "\"1e3\" is not a size: the unit must be B, KiB, MiB, GiB or TiB");
}

TEST(Bytes, FormattedTextReadsBackAsTheSameSize) {
    for (const Bytes size : {Bytes{0}, Bytes{1}, Bytes{4097}, mebibytes(256), mebibytes(1536),
                             mebibytes(1792), gibibytes(4096), Bytes{(1ULL << 62) + 1}})
        EXPECT_EQ(parse_bytes(format_bytes(size)), size) << format_bytes(size);
    EXPECT_EQ(format_bytes(mebibytes(256)), "256MiB");
    EXPECT_EQ(format_bytes(mebibytes(1536)), "1.5GiB");
}

TEST(SerialNumber, HexAndDecimalAreReadAndWrittenAsHex) {
    EXPECT_EQ(parse_serial("0x4d54000100000001")->value, 0x4d54000100000001U);
    EXPECT_EQ(parse_serial("22136")->value, 0x5678U);
    EXPECT_EQ(format_serial({0x5678}), "0x0000000000005678");
    EXPECT_EQ(format_serial({0}), "0x0000000000000000");
}

TEST(SerialNumber, WhatDoesNotFitIsRefused) {
    for (const auto* text : {"", "0x", "0x1ffffffffffffffff", "-1", "12z", "0x 1"})
        EXPECT_EQ(parse_serial(text).error().code, ErrorCode::kInvalidArgument) << text;
}

TEST(Names, AreLowerCaseLabels) {
    EXPECT_TRUE(check_name("host-0"));
    for (const auto* name : {"", "-a", "a-", "Host", "a_b", "a/b", "ä"})
        EXPECT_FALSE(check_name(name)) << name;
    EXPECT_FALSE(check_name(std::string(64, 'a')));
}

TEST(Error, ContextComesBeforeTheMessageAndKeepsTheCode) {
    Error error{ErrorCode::kTimeout, "no answer"};
    const Error outer = std::move(error).with_context("bind vPPB 1");
    EXPECT_EQ(outer.message, "bind vPPB 1: no answer");
    EXPECT_EQ(outer.code, ErrorCode::kTimeout);
}

TEST(Error, ErrnoBecomesACodeAndAText) {
    const Result<> result = fail_errno("write", "/x", 28);
    EXPECT_EQ(result.error().code, ErrorCode::kExhausted);
    EXPECT_EQ(result.error().message, "write /x: No space left on device");
}

}  // namespace
}  // namespace memtide
