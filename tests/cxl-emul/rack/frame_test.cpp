#include "cxl-emul/rack/frame.h"

#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

const Frame kOutput{FrameType::kOutput, 7, "hello"};

TEST(Frame, BytesOnTheWire) {
    EXPECT_EQ(encode_frame(kOutput), std::string("\x05\x00\x00\x00\x07MTF\x07\x00\x00\x00hello", 17));
}

TEST(Frame, ComesBackHoweverItIsCut) {
    const auto bytes = encode_frame(kOutput) + encode_frame(credit_frame(3, 65536));
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        FrameParser parser;
        parser.feed(bytes.substr(0, cut));
        std::vector<Frame> frames;
        const auto drain = [&] {
            for (auto next = parser.next(); next && *next; next = parser.next()) frames.push_back(**next);
        };
        drain();
        parser.feed(bytes.substr(cut));
        drain();
        ASSERT_EQ(frames.size(), 2U) << "cut at " << cut;
        EXPECT_EQ(frames[0], kOutput);
        EXPECT_EQ(*frame_number(frames[1]), 65536U);
    }
}

TEST(Frame, GarbageIsAProtocolErrorUntilReset) {
    FrameParser parser;
    parser.feed("GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(parser.next().error().code, ErrorCode::kProtocol);
    EXPECT_FALSE(parser.next());
    parser.reset();
    EXPECT_FALSE(parser.next()->has_value());
}

TEST(Frame, PayloadLongerThanAllowedIsRefusedBeforeItComes) {
    FrameParser parser;
    parser.feed(std::string("\x01\x00\x10\x00\x06MTF\x00\x00\x00\x00", 12));
    EXPECT_EQ(parser.next().error().code, ErrorCode::kProtocol);
}

TEST(Frame, UnknownTypeIsRefused) {
    for (const char type : {'\x00', '\x0e', '\x7f'}) {
        auto bytes = encode_frame(kOutput);
        bytes[4] = type;
        FrameParser parser;
        parser.feed(bytes);
        EXPECT_FALSE(parser.next()) << static_cast<int>(type);
    }
}

TEST(Frame, SkipsToTheHelloAfterALostPlace) {
    FrameParser parser(FrameParser::Start::kAfterHello);
    parser.feed(encode_frame(kOutput).substr(3));  // the rest of what a former peer sent
    EXPECT_FALSE(parser.next()->has_value());
    const auto& marker = hello_marker();
    parser.feed("garbage" + marker.substr(0, 5));
    EXPECT_FALSE(parser.next()->has_value());
    parser.feed(marker.substr(5) + encode_frame(kOutput));
    EXPECT_EQ((*parser.next())->type, FrameType::kHello);
    EXPECT_EQ(**parser.next(), kOutput);
}

TEST(Frame, SkippingKeepsNoMoreThanAMarkersWorth) {
    FrameParser parser(FrameParser::Start::kAfterHello);
    for (int i = 0; i < 1000; ++i) {
        parser.feed(std::string(10'000, 'x'));
        ASSERT_FALSE(parser.next()->has_value());
    }
    parser.feed(hello_marker());
    EXPECT_TRUE(parser.next()->has_value());
}

TEST(Frame, NumberThatIsMissingIsAProtocolError) {
    EXPECT_EQ(frame_number({FrameType::kExit, 1, "abc"}).error().code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace memtide::emul
