// Captures: written and read back, cut out of TCP, typed as text.
#include "common/fmapi/capture/capture.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/hex.h"
#include "common/fmapi/capture/pcap_writer.h"
#include "common/fmapi/capture/session_capture.h"
#include "common/fmapi/capture/tcp_streams.h"
#include "common/fmapi/commands.h"
#include "common/fmapi/dialect.h"
#include "tests/common/fmapi/hex.h"

namespace memtide::fmapi {
namespace {

using test::bytes;
using testing::HasSubstr;

class Captures : public testing::Test {
  protected:
    ~Captures() override { std::filesystem::remove(path_); }
    std::string path_ = fmt::format("/tmp/memtide-capture-{}.pcap", getpid());
};

const Message kRequest = make_request(Opcode::kGetPhysicalPortState, 5, bytes("02 00 01"));
const Message kResponse = make_response(kRequest, ReturnCode::kSuccess, Payload(4 + 4 * 16));  // two packets

std::vector<std::byte> asked() { return to_packets({.route = {.tag = 5}, .message = kRequest}); }
std::vector<std::byte> answered() {
    return to_packets({.route = reply_route({.tag = 5}), .message = kResponse});
}

TEST_F(Captures, AreReadAsTheyWereWritten) {
    auto writer = PcapWriter::open(path_);
    ASSERT_TRUE(writer) << writer.error().message;
    const auto time =
        std::chrono::system_clock::time_point(std::chrono::nanoseconds(1'700'000'000'123'456'789));
    ASSERT_TRUE(writer->write(7, Sender::kManager, asked(), time));
    ASSERT_TRUE(writer->write(7, Sender::kSwitch, answered(), time + std::chrono::microseconds(30)));
    // While the writer lives: a program that is killed leaves as much.
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 2U);
    EXPECT_EQ(capture->messages[0].message, kRequest);
    EXPECT_EQ(capture->messages[0].time, time);
    EXPECT_EQ(capture->messages[1].message, kResponse);
    EXPECT_EQ(capture->messages[1].answers, 0U);
    EXPECT_EQ(capture->messages[1].type, MctpType::kFmApi);
    EXPECT_EQ(capture->messages[1].source, "10.0.0.2:2650");
    EXPECT_TRUE(read_capture_file(path_, {.tcp_port = PcapWriter::kSwitchPort}));
    EXPECT_THAT(read_capture_file(path_, {.tcp_port = 80}).error().message,
                HasSubstr("none of its 4 packets carries MCTP on port 80"));
}

TEST_F(Captures, KeepConnectionsApart) {
    auto writer = PcapWriter::open(path_);
    ASSERT_TRUE(writer);
    const auto packets = answered();
    for (std::size_t half = 0; half < 2; ++half)
        for (const std::uint64_t connection : {3, 9})
            ASSERT_TRUE(
                writer->write(connection, Sender::kSwitch, std::span(packets).subspan(half * 68, 68)));
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 2U);
    EXPECT_EQ(capture->messages[0].destination, "10.0.0.1:40000");
    EXPECT_EQ(capture->messages[1].destination, "10.0.0.1:40001");
}

TEST_F(Captures, GoOnBehindWhatIsThereAndAreForTheirOwnerOnly) {
    for (std::uint8_t tag = 1; tag <= 3; ++tag) {
        const auto file = SessionCapture::open(path_);
        ASSERT_TRUE(file) << file.error().message;
        StreamTap tap = (*file)->of_switch("switch0").connection();
        Message request = kRequest;
        request.tag = tag;
        tap.write(Sender::kManager, to_packets({.route = {}, .message = request}));
        if (tag == 2) std::ofstream(path_, std::ios::app) << "half a packet";  // as of a machine that died
    }
    struct stat status{};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(capture->messages[i].message->tag, i + 1);
        EXPECT_EQ(capture->messages[i].destination, "10.0.0.2:2650");
        for (std::size_t j = 0; j < i; ++j)
            EXPECT_NE(capture->messages[i].source, capture->messages[j].source) << "another connection";
    }
}

TEST_F(Captures, OfTwoProgramsAreTwoFiles) {
    {
        const auto first = PcapWriter::open(path_);
        ASSERT_TRUE(first);
        const auto second = PcapWriter::open(path_);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, ErrorCode::kConflict);
        EXPECT_THAT(second.error().message, testing::HasSubstr("another capture writes to it"));
    }
    EXPECT_TRUE(PcapWriter::open(path_));
}

TEST_F(Captures, GiveEachSwitchAnAddress) {
    {
        const auto file = SessionCapture::open(path_);
        ASSERT_TRUE(file);
        StreamTap first = (*file)->of_switch("switch0").connection();
        StreamTap second = (*file)->of_switch("switch1").connection();
        second.write(Sender::kManager, asked());
        first.write(Sender::kManager, asked());
        second.write(Sender::kSwitch, answered());
    }
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 3U);
    EXPECT_EQ(capture->messages[0].destination, "10.0.0.3:2650");
    EXPECT_EQ(capture->messages[1].destination, "10.0.0.2:2650");
    EXPECT_EQ(capture->messages[2].answers, 0U);
    EXPECT_EQ(PcapWriter::address_of_switch(300), "10.0.1.46:2650");
}

TEST_F(Captures, OverwriteNothingElse) {
    std::ofstream(path_) << "somebody's only copy of something";
    const auto refused = PcapWriter::open(path_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr(path_));
    EXPECT_FALSE(PcapWriter::open("/nowhere/x.pcap"));
    EXPECT_FALSE(PcapWriter::open("/tmp"));
    EXPECT_EQ(PcapWriter::open("/dev/full").error().code, ErrorCode::kExhausted);
}

// What a file size limit does is what a full disk does.
TEST_F(Captures, OfAFullDiskEndAndStayReadable) {
    std::signal(SIGXFSZ, SIG_IGN);
    const auto file = SessionCapture::open(path_);
    ASSERT_TRUE(file);
    StreamTap tap = (*file)->of_switch("switch0").connection();
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = before;
    limit.rlim_cur = 4000;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 100; ++i) tap.write(Sender::kManager, asked());
    ::setrlimit(RLIMIT_FSIZE, &before);
    tap.write(Sender::kManager, asked());  // it has ended: a gap would be worse
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture) << capture.error().message;
    EXPECT_EQ(capture->messages.size(), (4000U - 24 - 2 * 56) / (56 + 68));
    EXPECT_EQ(capture->missing_bytes, 0U);
}

TEST_F(Captures, IntoAPipeNeverWaitForItsReader) {
    std::signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_THAT(PcapWriter::open(path_).error().message, HasSubstr("nobody reads this pipe"));
    int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
    auto slow = PcapWriter::open(path_);
    ASSERT_TRUE(slow) << slow.error().message;
    Result<> written;
    while (written) written = slow->write(1, Sender::kManager, std::vector<std::byte>(10'000));
    EXPECT_THAT(written.error().message, HasSubstr("its reader is too slow"));
    ::close(reader);
    reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
    const auto gone = SessionCapture::open(path_);
    ASSERT_TRUE(gone);
    ::close(reader);
    StreamTap tap = (*gone)->of_switch("switch0").connection();
    tap.write(Sender::kManager, asked());
}

// Whatever is spoken, the same is read.
TEST_F(Captures, TellTheirFramingAndHeadersByThemselves) {
    const Message large = make_request(Opcode::kAddDynamicCapacityResponse, 6, Payload(200));
    const Message inner = make_request(Opcode::kIdentify, 9);
    const Message tunnel = make_request(Opcode::kTunnelManagementCommand, 7,
                                        encode(TunnelRequest{.id = 2, .command = encode_message(inner)}));
    for (const Dialect& dialect : dialects()) {
        std::filesystem::remove(path_);
        {
            auto writer = PcapWriter::open(path_);
            ASSERT_TRUE(writer);
            for (const Message& request : {kRequest, large, tunnel}) {
                Message response = request.tag == 5 ? kResponse : make_response(request, ReturnCode::kBusy);
                response.background = request.tag == 6;
                if (dialect.opcode_zero_in_responses) response.opcode = Opcode{};
                const MctpRoute route{.tag = 1};
                ASSERT_TRUE(writer->write(1, Sender::kManager,
                                          to_packets({.route = route, .message = request}, dialect.wire)));
                ASSERT_TRUE(writer->write(
                    1, Sender::kSwitch,
                    to_packets({.route = reply_route(route), .message = response}, dialect.wire)));
            }
        }
        for (const auto& format : {std::optional<WireFormat>(), std::optional(dialect.wire)}) {
            const auto capture = read_capture_file(path_, {.format = format});
            ASSERT_TRUE(capture) << dialect.name << ": " << capture.error().message;
            ASSERT_EQ(capture->messages.size(), 6U) << dialect.name;
            EXPECT_EQ(capture->messages[0].message, kRequest) << dialect.name;
            EXPECT_EQ(capture->messages[1].message->payload, kResponse.payload) << dialect.name;
            EXPECT_EQ(capture->messages[2].message, large) << dialect.name;
            EXPECT_TRUE(capture->messages[3].message->background) << dialect.name;
            EXPECT_EQ(capture->messages[4].message, tunnel) << dialect.name;
            EXPECT_EQ(capture->messages[5].answers, 4U) << dialect.name;
        }
    }
}

TEST_F(Captures, OfConnectionsThatSpeakDifferentlyAreReadTogether) {
    {
        auto writer = PcapWriter::open(path_);
        ASSERT_TRUE(writer);
        std::uint64_t connection = 0;
        for (const char* const name : {"spec", "framed"}) {
            const WireFormat wire = find_dialect(name)->wire;
            ++connection;
            ASSERT_TRUE(writer->write(connection, Sender::kManager,
                                      to_packets({.route = {}, .message = kRequest}, wire)));
            ASSERT_TRUE(writer->write(connection, Sender::kSwitch,
                                      to_packets({.route = {}, .message = kResponse}, wire)));
        }
    }
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture);
    ASSERT_EQ(capture->messages.size(), 4U);
    EXPECT_EQ(capture->messages[1].answers, 0U);
    EXPECT_EQ(capture->messages[3].answers, 2U);
    const auto forced = read_capture_file(path_, {.format = WireFormat()});
    ASSERT_TRUE(forced);
    EXPECT_FALSE(forced->messages[2].error.empty()) << "frames are no packets";
}

// Link type 291: a packet may be as long as its message.
TEST_F(Captures, OfBareMctpPacketsAreReadToo) {
    std::string file("\x4d\x3c\xb2\xa1\x02\x00\x04\x00", 8);
    file += std::string("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x23\x01\x00\x00", 16);
    auto packet = asked();
    packet.resize(4 + 1 + 12 + 3);
    const auto size = static_cast<char>(packet.size());
    file += std::string(8, '\0') + size + std::string(3, '\0') + size + std::string(3, '\0');
    file.append(reinterpret_cast<const char*>(packet.data()), packet.size());
    std::ofstream(path_, std::ios::binary).write(file.data(), static_cast<std::streamsize>(file.size()));
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 1U);
    EXPECT_EQ(capture->messages[0].message, kRequest) << capture->messages[0].error;
    EXPECT_EQ(capture->messages[0].source, "endpoint 0");
}

// A pcapng file of bare MCTP packets (link type 291) with one packet of this time, in microseconds.
std::vector<std::byte> pcapng(std::uint64_t time, std::span<const std::byte> packet) {
    auto file = bytes(
        "0a 0d 0d 0a 1c 00 00 00 4d 3c 2b 1a 01 00 00 00 ff ff ff ff ff ff ff ff 1c 00 00 00"
        "01 00 00 00 14 00 00 00 23 01 00 00 00 00 01 00 14 00 00 00");
    const auto put = [&file](std::uint64_t value) {
        for (int i = 0; i < 4; ++i) file.push_back(static_cast<std::byte>(value >> (8 * i)));
    };
    const std::size_t padded = (packet.size() + 3) / 4 * 4;
    for (const std::uint64_t word :
         {std::uint64_t{6}, 32 + padded, std::uint64_t{0}, time >> 32, time, packet.size(), packet.size()})
        put(word);
    file.insert(file.end(), packet.begin(), packet.end());
    file.resize(file.size() + padded - packet.size());
    put(32 + padded);
    return file;
}

TEST_F(Captures, OfTimesThatNoClockHoldsHaveItsLast) {
    const auto file = pcapng(~std::uint64_t{0}, asked());
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 1U);
    const auto end = std::chrono::system_clock::time_point::max();
    EXPECT_GT(capture->messages[0].time.value(), end - std::chrono::hours(3));
}

TEST_F(Captures, APacketWithoutAMessageInItIsAnError) {
    const auto file = pcapng(0, bytes("01 00 00 c8"));
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    const auto capture = read_capture_file(path_);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 1U);
    EXPECT_EQ(capture->messages[0].error, "a packet of 4 bytes: MCTP packets here have 5 to 68");
}

TEST_F(Captures, ThatAreNoneOrEndEarlyAreRefusedByName) {
    EXPECT_THAT(read_capture_file("/nowhere/x.pcap").error().message, HasSubstr("/nowhere/x.pcap"));
    std::ofstream(path_) << "hello, this is no capture at all";
    EXPECT_THAT(read_capture_file(path_).error().message, HasSubstr(path_ + " is not a capture"));
    std::filesystem::remove(path_);
    {
        auto writer = PcapWriter::open(path_);
        ASSERT_TRUE(writer->write(1, Sender::kManager, asked()));
    }
    std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 3);
    EXPECT_THAT(read_capture_file(path_).error().message, HasSubstr("behind packet 2"));
}

// An Ethernet frame with one TCP segment.
std::vector<std::byte> frame(std::uint16_t from, std::uint16_t to, std::uint32_t sequence, bool syn,
                             std::span<const std::byte> payload) {
    auto packet = bytes("02 00 00 00 00 02 02 00 00 00 00 01 08 00");
    const auto length = static_cast<unsigned>(40 + payload.size());
    const auto ip = bytes(fmt::format("45 00 {:02x} {:02x} 00 00 40 00 40 06 00 00 7f 00 00 01 7f 00 00 01",
                                      length >> 8, length & 0xff));
    const auto tcp =
        bytes(fmt::format("{:02x} {:02x} {:02x} {:02x} {:02x} {:02x} {:02x} {:02x} 00 00 00 00 50 {} 00 00 "
                          "00 00 00 00",
                          from >> 8, from & 0xff, to >> 8, to & 0xff, sequence >> 24, sequence >> 16 & 0xff,
                          sequence >> 8 & 0xff, sequence & 0xff, syn ? "02" : "10"));
    packet.insert(packet.end(), ip.begin(), ip.end());
    packet.insert(packet.end(), tcp.begin(), tcp.end());
    packet.insert(packet.end(), payload.begin(), payload.end());
    return packet;
}

std::vector<std::byte> given_out(TcpStreams& streams, const std::vector<std::byte>& packet) {
    const auto segment = tcp_segment(1, packet);
    return segment ? streams.add(*segment) : std::vector<std::byte>{};
}

TEST(TcpStreams, PutSegmentsIntoTheirOrderAndTakeEachByteOnce) {
    TcpStreams streams;
    const auto data = answered();
    const std::span all(data);
    const std::uint32_t first = 0xffffffe0;  // the numbers wrap
    EXPECT_TRUE(given_out(streams, frame(8600, 4000, first - 1, true, {})).empty());
    EXPECT_TRUE(given_out(streams, frame(8600, 4000, first + 40, false, all.subspan(40))).empty());
    EXPECT_EQ(streams.waiting(), data.size() - 40);
    EXPECT_EQ(given_out(streams, frame(8600, 4000, first, false, all.first(50))), data);
    EXPECT_EQ(streams.waiting(), 0U);
    EXPECT_TRUE(given_out(streams, frame(8600, 4000, first, false, all.first(50))).empty()) << "sent again";
    EXPECT_TRUE(given_out(streams, frame(4000, 8600, 7, true, {})).empty()) << "the other direction";
    EXPECT_EQ(given_out(streams, frame(4000, 8600, 8, false, asked())), asked());
}

TEST(TcpStreams, WhatIsSentAgainMayBeLongerThanItWas) {
    TcpStreams streams;
    const auto data = answered();
    const std::span all(data);
    EXPECT_TRUE(given_out(streams, frame(8600, 4000, 0, true, {})).empty());
    EXPECT_TRUE(given_out(streams, frame(8600, 4000, 11, false, all.subspan(10, 5))).empty());
    EXPECT_TRUE(given_out(streams, frame(8600, 4000, 11, false, all.subspan(10))).empty());
    EXPECT_TRUE(given_out(streams, frame(8600, 4000, 11, false, all.subspan(10, 1))).empty());
    EXPECT_EQ(given_out(streams, frame(8600, 4000, 1, false, all.first(10))), data);
    EXPECT_EQ(streams.waiting(), 0U);
}

TEST(TcpStreams, NoPrefixOfAFrameIsReadBeyondItsEnd) {
    const auto whole = frame(8600, 4000, 1, false, asked());
    for (std::size_t cut = 0; cut < whole.size(); ++cut)
        for (const int link_type : {0, 1, 101, 113, 276, 999})
            (void)tcp_segment(link_type, std::span(whole).first(cut));
    EXPECT_FALSE(tcp_segment(1, std::span(whole).first(whole.size() - 1))) << "the IP length says more";
    EXPECT_TRUE(tcp_segment(101, std::span(whole).subspan(14)));
}

TEST(CaptureText, IsPacketsOrMessages) {
    const std::string packets = "# asked\n" + to_hex(asked()) + "\n";
    const auto capture = read_capture_text(packets);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 1U);
    EXPECT_EQ(capture->messages[0].message, kRequest);

    const auto both =
        read_capture_text(to_hex(encode_message(kRequest)) + " 07 " + to_hex(encode_message(kResponse)));
    ASSERT_TRUE(both) << both.error().message;
    ASSERT_EQ(both->messages.size(), 2U);
    EXPECT_EQ(both->messages[1].answers, 0U);
    EXPECT_EQ(both->messages[1].type, MctpType::kFmApi);
}

TEST(CaptureText, IsReadAsTheDialectWritesItThatIsNamed) {
    const WireFormat wire = find_dialect("framed-big-endian")->wire;
    const auto capture =
        read_capture_text(to_hex(to_packets({.route = {}, .message = kRequest}, wire)), wire);
    ASSERT_TRUE(capture) << capture.error().message;
    ASSERT_EQ(capture->messages.size(), 1U);
    EXPECT_EQ(capture->messages[0].message, kRequest);
}

TEST(CaptureText, MistakesAreSaid) {
    EXPECT_THAT(read_capture_text("00 0g").error().message, HasSubstr("\"0g\" is not a byte"));
    EXPECT_THAT(read_capture_text("  # nothing\n").error().message, HasSubstr("no bytes"));
    EXPECT_FALSE(read_capture_text("00 01 00"));
    auto broken = asked();
    broken[0] = std::byte{1};
    broken[3] = std::byte{0};  // neither start nor end
    const auto capture = read_capture_text(to_hex(broken));
    ASSERT_TRUE(capture);
    EXPECT_FALSE(capture->messages.at(0).error.empty());
}

TEST(Hex, IsWrittenAndReadBack) {
    EXPECT_EQ(to_hex(bytes("00 0a ff")), "000aff");
    EXPECT_EQ(*parse_hex("0x00 0A:ff,01\n"), bytes("00 0a ff 01"));
    EXPECT_FALSE(parse_hex("0"));
    EXPECT_FALSE(parse_hex("0x"));
}

}  // namespace
}  // namespace memtide::fmapi
