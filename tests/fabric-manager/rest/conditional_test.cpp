#include "fabric-manager/rest/conditional.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EntityTag, DiffersWhenAByteDiffers) {
    EXPECT_EQ(etag_of("{}"), etag_of("{}"));
    EXPECT_NE(etag_of("{}"), etag_of("{ }"));
    EXPECT_EQ(etag_of("").front(), '"');
    EXPECT_EQ(etag_of("").back(), '"');
}

TEST(EntityTag, OfACompositionIsItsRevisionWhileNothingIsNotedBesides) {
    Composition c;
    c.revision = 17;
    EXPECT_EQ(etag_of(c), "\"17\"");
    c.parts.emplace_back();
    EXPECT_EQ(etag_of(c), "\"17\"");
    c.parts[0].waiting_for = "the agent of host0";
    const std::string waiting = etag_of(c);
    EXPECT_THAT(waiting, testing::StartsWith("\"17-"));
    c.parts[0].holders.push_back({.block = "memory32", .pid = 7, .command = "db", .bytes = {}});
    EXPECT_NE(etag_of(c), waiting);
}

TEST(EntityTag, ListsAreReadWithAndWithoutSpacesAndWeakTags) {
    const auto list = parse_tags("If-Match", R"( "1",W/"2" ,, "11")");
    ASSERT_TRUE(list) << list.error().detail;
    EXPECT_THAT(list->tags, ElementsAre("\"1\"", "W/\"2\"", "\"11\""));
    EXPECT_TRUE(parse_tags("If-Match", "*")->any);
}

TEST(EntityTag, WhatIsNoTagIsRefusedWithTheHeadersName) {
    for (const char* text : {"17", "\"17", "", ",", "*, \"1\"", "\"1\" \"2\"", "w/\"1\"", "\"a b\""}) {
        const auto list = parse_tags("If-Match", text);
        ASSERT_FALSE(list) << text;
        EXPECT_EQ(list.error().code, "invalid-request");
        EXPECT_THAT(list.error().detail, HasSubstr("If-Match")) << text;
    }
}

TEST(EntityTag, OneThatContainsAnotherIsAnother) {
    const TagList list = *parse_tags("If-Match", "\"1\"");
    EXPECT_TRUE(matches_strongly(list, "\"1\""));
    EXPECT_FALSE(matches_strongly(list, "\"11\""));
    EXPECT_TRUE(matches_revision(list, 1));
    EXPECT_FALSE(matches_revision(list, 11));
    EXPECT_FALSE(matches_revision(*parse_tags("If-Match", "\"11\""), 1));
}

TEST(EntityTag, WeakOnesOnlyMatchWhenReading) {
    const TagList list = *parse_tags("If-None-Match", "W/\"1\"");
    EXPECT_TRUE(matches_weakly(list, "\"1\""));
    EXPECT_FALSE(matches_strongly(list, "\"1\""));
}

TEST(EntityTag, OfWhatIsNotedOnlyTheRevisionCountsForAChange) {
    EXPECT_TRUE(matches_revision(*parse_tags("If-Match", "\"17-0123456789abcdef\""), 17));
    EXPECT_FALSE(matches_revision(*parse_tags("If-Match", "\"17-0123456789abcdef\""), 18));
    EXPECT_TRUE(matches_revision(*parse_tags("If-Match", "*"), 18));
}

}  // namespace
}  // namespace memtide::fm
