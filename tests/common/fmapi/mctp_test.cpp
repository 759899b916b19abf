#include "common/fmapi/mctp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fmapi/commands.h"
#include "tests/common/fmapi/hex.h"
#include "tests/common/fmapi/samples.h"

namespace memtide::fmapi {
namespace {

using test::bytes;
using test::hex;
using testing::HasSubstr;

using Packets = std::vector<std::byte>;

MctpMessage message_of(std::size_t payload_size, std::uint8_t tag = 0) {
    return {.route = {.destination = 8, .source = 9, .tag = tag, .tag_owner = true},
            .type = MctpType::kFmApi,
            .message = make_request(Opcode::kIdentifySwitchDevice, tag, test::some_bytes(payload_size))};
}

Packets packet_at(const Packets& all, std::size_t index) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(index * kPacketSize);
    return {begin, begin + kPacketSize};
}

std::byte& flags_of(Packets& all, std::size_t index) { return all[index * kPacketSize + 3]; }

// The messages that the bytes hold, or the error they end with.
Result<std::vector<MctpMessage>> assemble(PacketAssembler& assembler, const Packets& input) {
    assembler.feed(input);
    std::vector<MctpMessage> out;
    while (true) {
        auto next = assembler.next();
        if (!next) return std::unexpected(next.error());
        if (!*next) return out;
        out.push_back(std::move(**next));
    }
}

void expect_broken(const Packets& input, std::string_view why) {
    PacketAssembler assembler;
    const auto result = assemble(assembler, input);
    ASSERT_FALSE(result) << why;
    EXPECT_EQ(result.error().code, ErrorCode::kProtocol);
    EXPECT_THAT(result.error().message, HasSubstr(why));
    // And stays broken, whatever comes.
    EXPECT_FALSE(assemble(assembler, to_packets(message_of(0))));
}

TEST(Packets, AShortMessageIsOnePaddedPacket) {
    const auto packets = to_packets(message_of(0, 5));
    ASSERT_EQ(packets.size(), kPacketSize);
    EXPECT_EQ(hex({packets.begin(), packets.begin() + 20}),
              "01 08 09 cd 07 00 05 00 00 51 00 00 00 00 00 00 00 00 00 00");
    for (std::size_t i = 17; i < kPacketSize; ++i) EXPECT_EQ(packets[i], std::byte{0}) << i;
}

TEST(Packets, ALongMessageNumbersItsPacketsModuloFour) {
    // 516 bytes of ports: 1 + 12 + 516 = 529 bytes are 9 packets.
    const auto packets = to_packets(message_of(516));
    ASSERT_EQ(packets.size(), 9 * kPacketSize);
    const std::vector<std::string> flags = {"88", "18", "28", "38", "08", "18", "28", "38", "48"};
    for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(hex({packets[i * kPacketSize + 3]}), flags[i]) << i;
}

TEST(Packets, AMessageThatFillsItsLastPacketHasNoExtraOne) {
    EXPECT_EQ(to_packets(message_of(64 - 13)).size(), kPacketSize);
    EXPECT_EQ(to_packets(message_of(64 - 12)).size(), 2 * kPacketSize);
}

TEST(Packets, AReplyGoesBackUnderTheSameTag) {
    const MctpRoute reply = reply_route({.destination = 8, .source = 9, .tag = 3, .tag_owner = true});
    EXPECT_EQ(reply, (MctpRoute{.destination = 9, .source = 8, .tag = 3, .tag_owner = false}));
}

TEST(Assembler, EveryPayloadLengthReadsBack) {
    PacketAssembler assembler;
    for (std::size_t size = 0; size < 300; ++size) {
        const MctpMessage sent = message_of(size, static_cast<std::uint8_t>(size % 8));
        const auto got = assemble(assembler, to_packets(sent));
        ASSERT_TRUE(got) << got.error().message;
        ASSERT_EQ(got->size(), 1U);
        EXPECT_EQ(got->front().message, sent.message);
        EXPECT_EQ(got->front().route, sent.route);
        EXPECT_EQ(got->front().type, MctpType::kFmApi);
        EXPECT_EQ(assembler.pending(), 0U);
    }
}

TEST(Assembler, BytesMayDripInOneByOne) {
    PacketAssembler assembler;
    const auto packets = to_packets(message_of(200));
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const auto got = assemble(assembler, {packets[i]});
        ASSERT_TRUE(got);
        EXPECT_EQ(got->size(), i + 1 == packets.size() ? 1U : 0U) << i;
        EXPECT_EQ(assembler.pending() == 0, i + 1 == packets.size()) << i;
    }
}

TEST(Assembler, ManyMessagesMayComeInOneRead) {
    Packets all;
    for (std::uint8_t i = 0; i < 20; ++i) {
        const auto packets = to_packets(message_of(i * 10U, i % 8));
        all.insert(all.end(), packets.begin(), packets.end());
    }
    PacketAssembler assembler;
    const auto got = assemble(assembler, all);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->size(), 20U);
}

TEST(Assembler, TwoInterleavedMessagesAreToldApartByTheirTag) {
    const auto first = to_packets(message_of(150, 1));
    const auto second = to_packets(message_of(170, 2));
    Packets mixed;
    for (std::size_t i = 0; i < 3; ++i)
        for (const auto* packets : {&first, &second}) {
            const auto packet = packet_at(*packets, i);
            mixed.insert(mixed.end(), packet.begin(), packet.end());
        }
    PacketAssembler assembler;
    const auto got = assemble(assembler, mixed);
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(got->size(), 2U);
    EXPECT_EQ((*got)[0].message, message_of(150, 1).message);
    EXPECT_EQ((*got)[1].message, message_of(170, 2).message);
}

TEST(Assembler, ANewStartUnderTheSameTagAbandonsTheOldMessage) {
    Packets input = packet_at(to_packets(message_of(150, 1)), 0);
    const auto whole = to_packets(message_of(3, 1));
    input.insert(input.end(), whole.begin(), whole.end());
    PacketAssembler assembler;
    const auto got = assemble(assembler, input);
    ASSERT_TRUE(got);
    ASSERT_EQ(got->size(), 1U);
    EXPECT_EQ(got->front().message.payload.size(), 3U);
    EXPECT_EQ(assembler.pending(), 0U);
}

TEST(Assembler, AFirstSequenceNumberOtherThanZeroIsFine) {
    auto packets = to_packets(message_of(60));
    flags_of(packets, 0) = std::byte{0x80 | 3 << 4 | 0x08};
    flags_of(packets, 1) = std::byte{0x40 | 0 << 4 | 0x08};
    PacketAssembler assembler;
    EXPECT_EQ(assemble(assembler, packets)->size(), 1U);
}

TEST(Assembler, PacketsOutOfSequenceBreakTheStream) {
    auto packets = to_packets(message_of(150));
    flags_of(packets, 1) = std::byte{2 << 4 | 0x08};
    expect_broken(packets, "out of sequence: 2 instead of 1");
}

TEST(Assembler, APacketWithoutAStartBreaksTheStream) {
    auto packets = to_packets(message_of(0));
    flags_of(packets, 0) &= std::byte{0x7f};
    expect_broken(packets, "start bit missing");
}

TEST(Assembler, ALengthAboveTheLimitBreaksTheStreamBeforeItIsCollected) {
    auto packets = to_packets(message_of(150));
    packets[kPacketHeaderSize + 1 + 7] = std::byte{0x1f};  // length [20:16]
    expect_broken(packet_at(packets, 0), "are allowed");
}

TEST(Assembler, AMessageThatEndsBeforeItsLengthBreaksTheStream) {
    auto packets = to_packets(message_of(150));
    flags_of(packets, 1) |= std::byte{0x40};
    expect_broken(packets, "ends after 2 of 3 packets");
}

TEST(Assembler, AMessageThatGoesOnBehindItsLengthBreaksTheStream) {
    auto packets = to_packets(message_of(150));
    flags_of(packets, 2) &= std::byte{0xbf};
    expect_broken(packets, "end bit missing");
}

TEST(Assembler, AnotherMctpVersionBreaksTheStream) {
    auto packets = to_packets(message_of(0));
    packets[0] = std::byte{2};
    expect_broken(packets, "header version 2");
}

TEST(Assembler, AnUnknownMessageTypeBreaksTheStream) {
    auto packets = to_packets(message_of(0));
    packets[kPacketHeaderSize] = std::byte{0x7e};
    expect_broken(packets, "message type 0x7e");
}

TEST(Assembler, AnUnknownCategoryBreaksTheStream) {
    auto packets = to_packets(message_of(0));
    packets[kPacketHeaderSize + 1] = std::byte{0x07};
    expect_broken(packets, "category 7");
}

TEST(Assembler, MessagesBegunAndNeverEndedDoNotPileUp) {
    Packets input;
    for (std::uint8_t source = 0; source < 17; ++source) {
        MctpMessage message = message_of(150);
        message.route.source = source;
        const auto first = packet_at(to_packets(message), 0);
        input.insert(input.end(), first.begin(), first.end());
    }
    expect_broken(input, "17 messages begun and none ended");
}

}  // namespace
}  // namespace memtide::fmapi
