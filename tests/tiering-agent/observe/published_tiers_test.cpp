#include "tiering-agent/observe/published_tiers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

TEST(PublishedTiers, ReadBackAsTheyWereWritten) {
    const Tiers tiers{
        .tiers = {{.name = "dram", .nodes = {0, 1}}, {.name = "cxl", .nodes = {2}}, {.name = "later"}}};
    const std::string text = tiers_as_text(tiers);
    EXPECT_EQ(text.substr(text.find('\n') + 1), "dram 0,1\ncxl 2\nlater\n");
    const auto read = parse_published_tiers(text);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, tiers.tiers);
}

TEST(PublishedTiers, WhatIsNoneIsRefused) {
    EXPECT_FALSE(parse_published_tiers("dram zero\n").has_value());
    EXPECT_FALSE(parse_published_tiers("dram 0 1\n").has_value());
    EXPECT_TRUE(parse_published_tiers("").has_value());
    EXPECT_TRUE(parse_published_tiers("\n  # only this\n\n").has_value());
}

TEST(PublishedTiers, EverybodyMayReadThem) {
    const FakeTree tree;
    const std::string path = tree.files().absolute("run/memtide/tiers");
    const mode_t before = ::umask(077);
    const auto done = publish_tiers(path, {.tiers = {{.name = "dram", .nodes = {0}}}});
    ASSERT_TRUE(done.has_value()) << done.error().message;
    ASSERT_TRUE(publish_tiers(path, {.tiers = {{.name = "all", .nodes = {0}}}}).has_value()) << "again";
    ::umask(before);
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0644U);
    EXPECT_NE(tree.files().read("run/memtide/tiers")->find("all 0"), std::string::npos);
}

}  // namespace
}  // namespace memtide::agent
