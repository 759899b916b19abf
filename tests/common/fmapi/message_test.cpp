#include "common/fmapi/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fmapi/commands.h"
#include "tests/common/fmapi/hex.h"

namespace memtide::fmapi {
namespace {

using test::bytes;
using test::hex;
using testing::HasSubstr;

TEST(Message, HeaderIsTwelveBytesLittleEndian) {
    Message response;
    response.is_response = true;
    response.tag = 0x2a;
    response.opcode = Opcode::kBindVppb;
    response.background = true;
    response.return_code = ReturnCode::kBackgroundStarted;
    response.vendor_status = 0x0b0a;
    response.payload = bytes("aa bb");
    EXPECT_EQ(hex(encode_message(response)), "01 2a 00 01 52 02 00 80 01 00 0a 0b aa bb");
    EXPECT_EQ(*decode_message(encode_message(response)), response);
}

TEST(Message, LengthUsesTwentyOneBits) {
    Message request = make_request(Opcode::kSanitize, 1, Payload(kMaxPayloadSize));
    const auto encoded = encode_message(request);
    EXPECT_EQ(hex({encoded.begin() + 5, encoded.begin() + 8}), "ff ff 1f");
    EXPECT_EQ(message_size(encoded), kHeaderSize + kMaxPayloadSize);
    EXPECT_EQ(decode_message(encoded)->payload.size(), kMaxPayloadSize);
}

TEST(Message, EveryTruncationIsRefused) {
    const auto whole = encode_message(make_request(Opcode::kBindVppb, 1, encode(BindVppbRequest{})));
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
        const auto decoded = decode_message(std::span(whole).first(cut));
        ASSERT_FALSE(decoded) << cut;
        EXPECT_EQ(decoded.error().code, ErrorCode::kProtocol);
    }
    EXPECT_EQ(message_size(std::span(whole).first(11)), 0U);
}

TEST(Message, BytesBehindThePayloadAreIgnored) {
    const Message request = make_request(Opcode::kIdentify, 9);
    auto padded = encode_message(request);
    padded.resize(64);
    EXPECT_EQ(*decode_message(padded), request);
}

TEST(Message, UnknownCategoryIsRefused) {
    const auto decoded = decode_message(bytes("02 00 00 01 00 00 00 00 00 00 00 00"));
    ASSERT_FALSE(decoded);
    EXPECT_THAT(decoded.error().message, HasSubstr("category 2"));
}

TEST(Message, AResponseKeepsTagAndOpcodeOfItsRequest) {
    const Message request = make_request(Opcode::kBindVppb, 77);
    const Message started = make_response(request, ReturnCode::kBackgroundStarted);
    EXPECT_TRUE(started.is_response);
    EXPECT_TRUE(started.background);
    EXPECT_EQ(started.tag, 77);
    EXPECT_EQ(started.opcode, Opcode::kBindVppb);
    EXPECT_FALSE(make_response(request, ReturnCode::kBusy).background);
}

TEST(Message, LogsNameOpcodeAndReturnCode) {
    const Message request = make_request(Opcode::kBindVppb, 7, Payload(6));
    EXPECT_EQ(to_string(request), "request Bind vPPB (5201h) tag 7, 6 bytes");
    EXPECT_EQ(to_string(make_response(request, ReturnCode::kBusy)),
              "response Bind vPPB (5201h) tag 7, 0 bytes, Busy (0006h)");
}

TEST(Opcode, EveryCommandWithACodecHasAName) {
    for_each_command([]<typename C>(C) { EXPECT_NE(name_of(C::kOpcode), "unknown command"); });
    EXPECT_EQ(to_string(static_cast<Opcode>(0x9999)), "unknown command (9999h)");
}

TEST(ReturnCode, NamesAndMeaningsFollowTheTable) {
    EXPECT_EQ(to_string(ReturnCode::kSuccess), "Success (0000h)");
    EXPECT_EQ(to_string(ReturnCode::kInvalidExtentList), "Invalid Extent List (001eh)");
    EXPECT_EQ(name_of(ReturnCode::kInvalidPayloadLength), "Invalid Payload Length");
    EXPECT_EQ(name_of(ReturnCode::kResourcesExhausted), "Resources Exhausted");
    EXPECT_EQ(to_string(static_cast<ReturnCode>(0x1234)), "unknown return code (1234h)");
    EXPECT_EQ(error_code_of(ReturnCode::kBusy), ErrorCode::kConflict);
    EXPECT_EQ(error_code_of(ReturnCode::kRetryRequired), ErrorCode::kConflict);
    EXPECT_EQ(error_code_of(ReturnCode::kInvalidInput), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error_code_of(ReturnCode::kResourcesExhausted), ErrorCode::kExhausted);
    EXPECT_EQ(error_code_of(ReturnCode::kPermanentMediaFailure), ErrorCode::kIo);
    EXPECT_EQ(error_code_of(static_cast<ReturnCode>(0x1234)), ErrorCode::kProtocol);
}

}  // namespace
}  // namespace memtide::fmapi
