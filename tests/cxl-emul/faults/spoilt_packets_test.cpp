#include "cxl-emul/faults/spoilt_packets.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/fmapi/mctp.h"

namespace memtide::emul::test {
namespace {

WireBytes numbered_packets(std::size_t packets) {
    WireBytes bytes(packets * fmapi::kPacketSize);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i / fmapi::kPacketSize);
    return bytes;
}

std::vector<int> order_of(const WireBytes& bytes) {
    std::vector<int> order;
    for (std::size_t i = 0; i < bytes.size(); i += fmapi::kPacketSize)
        order.push_back(std::to_integer<int>(bytes[i]));
    return order;
}

std::ptrdiff_t differences(const WireBytes& a, const WireBytes& b) {
    std::ptrdiff_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == b[i] ? 0 : 1;
    return count;
}

TEST(SpoiltPackets, ACorruptAnswerDiffersInThatManyBytes) {
    FaultRandom random(1);
    for (const std::size_t count : {1U, 5U, 68U}) {
        WireBytes bytes = numbered_packets(2);
        corrupt(bytes, count, random);
        EXPECT_EQ(differences(bytes, numbered_packets(2)), static_cast<std::ptrdiff_t>(count));
    }
    WireBytes all = numbered_packets(1);
    corrupt(all, 1000, random);
    EXPECT_EQ(differences(all, numbered_packets(1)), 68);
}

TEST(SpoiltPackets, ATruncatedAnswerIsNeitherEmptyNorWhole) {
    FaultRandom random(1);
    for (int i = 0; i < 1000; ++i) {
        WireBytes bytes = numbered_packets(2);
        truncate(bytes, 0, random);
        EXPECT_GE(bytes.size(), 1U);
        EXPECT_LT(bytes.size(), 2 * fmapi::kPacketSize);
    }
    WireBytes some = numbered_packets(1);
    truncate(some, 10, random);
    EXPECT_EQ(some.size(), 10U);
}

TEST(SpoiltPackets, ReorderedPacketsAreAllThereInAnotherOrder) {
    FaultRandom random(1);
    for (int i = 0; i < 1000; ++i) {
        WireBytes bytes = numbered_packets(2 + static_cast<std::size_t>(i) % 5);
        const std::vector<int> before = order_of(bytes);
        EXPECT_TRUE(reorder_packets(bytes, random));
        std::vector<int> after = order_of(bytes);
        EXPECT_NE(after, before);
        std::ranges::sort(after);
        EXPECT_EQ(after, before);
    }
    WireBytes one = numbered_packets(1);
    EXPECT_FALSE(reorder_packets(one, random));
}

TEST(SpoiltPackets, ADuplicatedPacketIsBehindItsOriginal) {
    FaultRandom random(1);
    WireBytes bytes = numbered_packets(3);
    duplicate_packet(bytes, random);
    const std::vector<int> order = order_of(bytes);
    ASSERT_EQ(order.size(), 4U);
    EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(SpoiltPackets, TheSameSeedDrawsTheSame) {
    const auto spoil_all = [](std::uint64_t seed) {
        FaultRandom random(seed);
        WireBytes bytes = numbered_packets(4);
        corrupt(bytes, 3, random);
        (void)reorder_packets(bytes, random);
        duplicate_packet(bytes, random);
        truncate(bytes, 0, random);
        return bytes;
    };
    EXPECT_EQ(spoil_all(3), spoil_all(3));
    EXPECT_NE(spoil_all(3), spoil_all(4));
}

TEST(SpoiltPackets, AChanceComesAsOftenAsItShould) {
    FaultRandom random(5);
    int hits = 0;
    for (int i = 0; i < 100'000; ++i) hits += draw_chance(random, 0.25) ? 1 : 0;
    EXPECT_NEAR(hits, 25'000, 600);
}

}  // namespace
}  // namespace memtide::emul::test
