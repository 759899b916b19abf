// The framings and header forms other than the specification's, and MCTP control messages.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fmapi/commands.h"
#include "common/fmapi/dialect.h"
#include "common/fmapi/mctp.h"
#include "common/fmapi/mctp_control.h"
#include "tests/common/fmapi/hex.h"
#include "tests/common/fmapi/samples.h"

namespace memtide::fmapi {
namespace {

using test::hex;
using testing::HasSubstr;

using Stream = std::vector<std::byte>;

constexpr WireFormat kTrue{.framing = Framing::kTruePackets};
constexpr WireFormat kFramed{.framing = Framing::kFrames};
constexpr WireFormat kFramedBig{.framing = Framing::kFrames, .frame_length_is_big_endian = true};
constexpr WireFormat kMirrored{.header = {.category_in_high_nibble = true, .background_in_low_bit = true}};
constexpr WireFormat kFormats[] = {WireFormat{}, kTrue, kFramed, kFramedBig, kMirrored};

MctpMessage response_of(std::size_t payload_size, std::uint8_t tag = 0) {
    const Message request = make_request(Opcode::kIdentifySwitchDevice, tag);
    return {
        .route = {.tag = static_cast<std::uint8_t>(tag & 7), .tag_owner = false},
        .type = MctpType::kFmApi,
        .message = make_response(request, ReturnCode::kBackgroundStarted, test::some_bytes(payload_size))};
}

Result<std::vector<MctpMessage>> read_all(PacketAssembler& assembler, std::span<const std::byte> input) {
    assembler.feed(input);
    std::vector<MctpMessage> out;
    while (true) {
        auto next = assembler.next();
        if (!next) return std::unexpected(next.error());
        if (!*next) return out;
        out.push_back(std::move(**next));
    }
}

std::string why_broken(const WireFormat& format, const Stream& input) {
    PacketAssembler assembler(format);
    const auto result = read_all(assembler, input);
    return result ? "not broken" : result.error().message;
}

TEST(Framings, EveryPayloadLengthReadsBackInEach) {
    for (const WireFormat& format : kFormats) {
        PacketAssembler assembler(format);
        for (std::size_t size = 0; size < 300; ++size) {
            const MctpMessage sent = response_of(size, static_cast<std::uint8_t>(size));
            const auto got = read_all(assembler, to_packets(sent, format));
            ASSERT_TRUE(got) << got.error().message;
            ASSERT_EQ(got->size(), 1U) << size;
            EXPECT_EQ(got->front().message, sent.message);
            EXPECT_EQ(got->front().route, sent.route);
            EXPECT_EQ(assembler.pending(), 0U);
        }
    }
}

TEST(Framings, BytesMayDripInOneByOneInEach) {
    for (const WireFormat& format : kFormats) {
        PacketAssembler assembler(format);
        Stream stream;
        for (const std::size_t size : {0U, 51U, 52U, 200U}) append_packets(stream, response_of(size), format);
        std::size_t got = 0;
        for (const std::byte& byte : stream) got += read_all(assembler, {&byte, 1}).value().size();
        EXPECT_EQ(got, 4U);
        EXPECT_EQ(assembler.pending(), 0U);
    }
}

TEST(Framings, OnlyTheLastPacketOfAMessageIsShorterAndItIsNotPadded) {
    EXPECT_EQ(to_packets(response_of(0), kTrue).size(), 4 + 1 + 12U);
    EXPECT_EQ(to_packets(response_of(64 - 13), kTrue).size(), kPacketSize);
    EXPECT_EQ(to_packets(response_of(64 - 12), kTrue).size(), kPacketSize + 4 + 1);
}

TEST(Framings, AFrameIsALengthAndTheMessageWithoutMctp) {
    EXPECT_EQ(hex(to_packets(response_of(0, 5), kFramed)), "0c 00 00 00 01 05 00 00 51 00 00 80 01 00 00 00");
    EXPECT_EQ(hex(to_packets(response_of(0, 5), kFramedBig)),
              "00 00 00 0c 01 05 00 00 51 00 00 80 01 00 00 00");
}

TEST(Framings, AMirroredHeaderHasTheCategoryHighAndTheBackgroundBitLow) {
    const auto packets = to_packets(response_of(2, 5), kMirrored);
    EXPECT_EQ(hex({packets.begin() + 4, packets.begin() + 17}), "07 10 05 00 00 51 02 00 01 01 00 00 00");
}

TEST(Framings, MessagesInTunnelsHaveTheFormOfTheOneAroundThem) {
    TunnelRequest to_ld;
    to_ld.target = TunnelTarget::kLd;
    to_ld.command = encode_message(make_request(Opcode::kGetHealthInfo, 1, test::some_bytes(3)));
    TunnelRequest to_port;
    to_port.command = encode_message(make_request(Opcode::kTunnelManagementCommand, 2, encode(to_ld)));
    const Message outer = make_request(Opcode::kTunnelManagementCommand, 3, encode(to_port));
    const auto bytes = encode_message(outer, kMirrored.header);
    const auto read_plainly = decode_message(bytes, kMirrored.header);
    ASSERT_TRUE(read_plainly);
    EXPECT_EQ(*read_plainly, outer);

    TunnelResponse inside;
    inside.response =
        encode_message(make_response(make_request(Opcode::kSanitize, 1), ReturnCode::kBackgroundStarted));
    const Message answer = make_response(outer, ReturnCode::kSuccess, encode(inside));
    const auto mirrored = encode_message(answer, kMirrored.header);
    EXPECT_EQ(std::to_integer<int>(mirrored[12 + 4]), 0x10);      // category of the inner message
    EXPECT_EQ(std::to_integer<int>(mirrored[12 + 4 + 7]), 0x01);  // its background bit
    EXPECT_EQ(*decode_message(mirrored, kMirrored.header), answer);
}

TEST(Framings, ALengthThatCannotBeBreaksAStreamOfFrames) {
    EXPECT_THAT(why_broken(kFramed, Stream(4, std::byte{0xff})), HasSubstr("are allowed"));
    EXPECT_THAT(why_broken(kFramed, Stream(4, std::byte{0})), HasSubstr("a frame of 0 bytes"));
    auto longer = to_packets(response_of(3), kFramed);
    longer[kFrameHeaderSize + 5] = std::byte{2};
    EXPECT_THAT(why_broken(kFramed, longer), HasSubstr("holds a message of 14 bytes"));
    auto neither = to_packets(response_of(3), kFramed);
    neither[kFrameHeaderSize] = std::byte{7};
    EXPECT_THAT(why_broken(kFramed, neither), HasSubstr("category 7"));
}

TEST(Framings, PacketsOfTrueLengthAreHeldToTheirMessage) {
    auto packets = to_packets(response_of(150), kTrue);
    packets[3] |= std::byte{0x40};
    EXPECT_THAT(why_broken(kTrue, packets), HasSubstr("ends after 1 of 3 packets"));
    packets = to_packets(response_of(150), kTrue);
    packets[kPacketSize + 3] = std::byte{2 << 4};
    EXPECT_THAT(why_broken(kTrue, packets), HasSubstr("out of sequence"));
    packets = to_packets(response_of(0), kTrue);
    packets[3] &= std::byte{0x7f};
    EXPECT_THAT(why_broken(kTrue, packets), HasSubstr("start bit missing"));
    packets = to_packets(response_of(0), kTrue);
    packets[0] = std::byte{2};
    EXPECT_THAT(why_broken(kTrue, packets), HasSubstr("header version 2"));
    packets = to_packets(response_of(0), kTrue);
    packets[4] = std::byte{0x7e};
    EXPECT_THAT(why_broken(kTrue, packets), HasSubstr("message type 0x7e"));
}

TEST(Framings, AnotherFramingThanThePeersNeverReadsAsAMessage) {
    for (const WireFormat& written : {WireFormat{}, kTrue, kFramed, kFramedBig})
        for (const WireFormat& read : {WireFormat{}, kTrue, kFramed, kFramedBig}) {
            // A packet of true length reads as one that has not come whole, and a padded one as its
            // beginning.
            if (written.framing == read.framing || written.framing == Framing::kFixedPackets) continue;
            if (written == kTrue && read == WireFormat{}) continue;
            PacketAssembler assembler(read);
            const auto got = read_all(assembler, to_packets(response_of(18), written));
            EXPECT_TRUE(!got || got->empty());
        }
}

TEST(Control, TravelsInPacketsOfBothLengths) {
    for (const WireFormat& format : {WireFormat{}, kTrue}) {
        MctpMessage sent;
        sent.type = MctpType::kControl;
        sent.message.payload = set_endpoint_id_request(3, 9);
        PacketAssembler assembler(format);
        const auto got = read_all(assembler, to_packets(sent, format));
        ASSERT_TRUE(got) << got.error().message;
        ASSERT_EQ(got->size(), 1U);
        EXPECT_EQ(got->front().type, MctpType::kControl);
        const Payload& body = got->front().message.payload;
        ASSERT_GE(body.size(), 4U);
        EXPECT_TRUE(std::ranges::equal(sent.message.payload, std::span(body).first(4)));
    }
    EXPECT_TRUE(to_packets({.route = {}, .type = MctpType::kControl, .message = {}}, kFramed).empty());
}

TEST(Control, AnEndpointTakesTheIdItIsGiven) {
    std::uint8_t eid = 0;
    const auto answer = answer_control(set_endpoint_id_request(3, 9), eid);
    ASSERT_TRUE(answer);
    EXPECT_EQ(eid, 9);
    EXPECT_EQ(hex(*answer), "03 01 00 00 09 00");
    EXPECT_EQ(accepted_endpoint_id(*answer, 3), 9);
    EXPECT_EQ(accepted_endpoint_id(*answer, 4), std::nullopt);
    const Payload get{std::byte{0x80}, std::byte{2}};
    EXPECT_EQ(hex(*answer_control(get, eid)), "00 02 00 09 00 00");
}

TEST(Control, RefusesReservedIdsShortRequestsAndWhatItDoesNotHave) {
    std::uint8_t eid = 20;
    for (const std::uint8_t reserved : std::vector<std::uint8_t>{0, 7, 255})
        EXPECT_EQ(hex(*answer_control(set_endpoint_id_request(0, reserved), eid)), "00 01 02");
    EXPECT_EQ(hex(*answer_control(Payload{std::byte{0x80}, std::byte{1}}, eid)), "00 01 03");
    EXPECT_EQ(hex(*answer_control(Payload{std::byte{0x80}, std::byte{0x0a}}, eid)), "00 0a 05");
    EXPECT_EQ(answer_control(Payload{std::byte{0x00}, std::byte{1}}, eid), std::nullopt);  // a response
    EXPECT_EQ(answer_control({}, eid), std::nullopt);
    EXPECT_EQ(eid, 20);
}

TEST(Control, ItsLengthFollowsFromTheCommand) {
    std::uint8_t eid = 9;
    for (const unsigned command : {1U, 2U, 4U, 5U}) {
        Payload request{std::byte{0x80}, static_cast<std::byte>(command), std::byte{0}, std::byte{9}};
        request.resize(*control_size(request));
        const auto answer = answer_control(request, eid);
        ASSERT_TRUE(answer);
        EXPECT_EQ(control_size(*answer), answer->size()) << command;
    }
    EXPECT_EQ(control_size({}), 0U);
    EXPECT_EQ(control_size(Payload{std::byte{0x80}, std::byte{0x0a}}), std::nullopt);
}

TEST(Dialects, HaveNamesOfTheirOwnAndTheFirstIsTheSpecifications) {
    EXPECT_EQ(spec_dialect().name, "spec");
    EXPECT_EQ(spec_dialect().wire, WireFormat{});
    for (const Dialect& one : dialects()) EXPECT_EQ(find_dialect(one.name), &one) << one.name;
    EXPECT_EQ(find_dialect("klingon"), nullptr);
}

TEST(Dialects, EachHasARowInTheDocumentation) {
    std::ifstream file(MEMTIDE_SOURCE_DIR "/docs/fm-api.md");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (const Dialect& one : dialects())
        EXPECT_THAT(text, HasSubstr("\n| `" + std::string(one.name) + "` | "));
}

TEST(Dialects, AreRecognisedByTheAnswerToIdentify) {
    EXPECT_EQ(recognise_dialect({}, false, 18).name, "spec");
    EXPECT_EQ(recognise_dialect({}, false, 17).name, "cxl-2.0");
    EXPECT_EQ(recognise_dialect({}, false, 14).name, "short-identify");
    EXPECT_EQ(recognise_dialect({}, true, 18).name, "opcode-zero");
    EXPECT_EQ(recognise_dialect(kTrue, false, 18).name, "true-length");
    EXPECT_EQ(recognise_dialect(kFramed, false, 18).name, "framed");
    EXPECT_EQ(recognise_dialect(kFramedBig, false, 18).name, "framed-big-endian");
    EXPECT_EQ(recognise_dialect(kMirrored, false, 18).name, "high-nibble");
    EXPECT_EQ(recognise_dialect({}, false, 40).name, "spec");
}

}  // namespace
}  // namespace memtide::fmapi
