// Of the load on Redis: its client's protocol, and which pages a value is on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/tiering/redis_values.h"
#include "tests/bench/tiering/resp.h"

namespace memtide::bench {
namespace {

using testing::HasSubstr;

TEST(TieringResp, CommandsAreArraysOfBulkStrings) {
    std::string out;
    append_command(out, {"SET", "k", ""});
    EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
}

TEST(TieringResp, AnswersAreReadOnceTheyAreWhole) {
    const std::string all = "+OK\r\n:42\r\n$5\r\na\r\nbc\r\n$-1\r\n-ERR no\r\n$0\r\n\r\n";
    for (std::size_t length = 0; length < all.size(); ++length) {
        std::string_view part = std::string_view(all).substr(0, length);
        while (true) {
            const std::size_t before = part.size();
            const auto reply = take_reply(part);
            ASSERT_TRUE(reply) << length;
            if (*reply) continue;
            EXPECT_EQ(part.size(), before) << "what is not whole stays";
            break;
        }
    }
    std::string_view rest = all;
    std::vector<std::pair<Reply::Kind, std::string>> seen;
    while (!rest.empty()) {
        const auto reply = take_reply(rest);
        ASSERT_TRUE(reply && *reply);
        seen.emplace_back((*reply)->kind, (*reply)->text);
    }
    using Kind = Reply::Kind;
    EXPECT_EQ(seen, (std::vector<std::pair<Kind, std::string>>{{Kind::kStatus, "OK"},
                                                               {Kind::kInteger, "42"},
                                                               {Kind::kBulk, "a\r\nbc"},
                                                               {Kind::kNull, "-1"},
                                                               {Kind::kError, "ERR no"},
                                                               {Kind::kBulk, ""}}));
}

TEST(TieringResp, WhatIsNoAnswerIsRefused) {
    for (const std::string text :
         {"\r\n", "x\r\n", "$x\r\n", "$-2\r\n", "$99999999999\r\n", "$1\r\nabc", "*1\r\n"}) {
        std::string_view rest = text;
        const auto reply = take_reply(rest);
        EXPECT_FALSE(reply) << text;
    }
}

TEST(TieringRedisValues, AddressOfAnObject) {
    EXPECT_EQ(object_address("Value at:0x7f00d2c1a5e0 refcount:1 encoding:raw serializedlength:1003 lru:1"),
              0x7f00d2c1a5e0U);
    EXPECT_FALSE(object_address("Value at:0x7f00d2c1a5e0 refcount:1 encoding:embstr serializedlength:3"));
    EXPECT_FALSE(object_address("Value at:0x encoding:raw "));
    EXPECT_FALSE(object_address("ERR no such key"));
}

TEST(TieringRedisValues, PagesHaveTheirShareOfAValue) {
    std::map<std::uint64_t, double> pages;
    add_pages({.address = 2 * 4096 - 250, .bytes = 1000}, 0.4, pages);
    add_pages({.address = 2 * 4096, .bytes = 1000}, 0.1, pages);
    ASSERT_EQ(pages.size(), 2U);
    EXPECT_NEAR(pages[1], 0.1, 1e-12);
    EXPECT_NEAR(pages[2], 0.4, 1e-12);
    pages.clear();
    add_pages({.address = 10, .bytes = 3 * 4096}, 1, pages);
    EXPECT_EQ(pages.size(), 4U);
    EXPECT_NEAR(pages[1], 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace memtide::bench
