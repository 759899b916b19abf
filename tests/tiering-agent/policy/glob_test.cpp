#include "tiering-agent/policy/glob.h"

#include <random>

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

bool path_matches(std::string_view pattern, std::string_view text) {
    const auto glob = Glob::parse(pattern, Glob::Of::kPath);
    return glob && glob->matches(text);
}
bool text_matches(std::string_view pattern, std::string_view text) {
    const auto glob = Glob::parse(pattern, Glob::Of::kText);
    return glob && glob->matches(text);
}

TEST(Glob, MatchesTheWholeText) {
    EXPECT_TRUE(text_matches("redis", "redis"));
    EXPECT_FALSE(text_matches("redis", "redis-server"));
    EXPECT_TRUE(text_matches("redis*", "redis-server"));
    EXPECT_TRUE(text_matches("*java*-Xmx*", "/usr/bin/java -Xmx4g a/b"));
    EXPECT_TRUE(text_matches("a?c", "abc"));
    EXPECT_FALSE(text_matches("a?c", "ac"));
    EXPECT_TRUE(text_matches("*", ""));
}

TEST(Glob, StarOfAPathStopsAtSlashesAndTwoDoNot) {
    EXPECT_TRUE(path_matches("/usr/bin/*", "/usr/bin/java"));
    EXPECT_FALSE(path_matches("/usr/*", "/usr/bin/java"));
    EXPECT_TRUE(path_matches("/usr/**", "/usr/bin/java"));
    EXPECT_TRUE(path_matches("/**/x-*.scope", "/a/b/x-1.scope"));
    EXPECT_FALSE(path_matches("/**/x-*.scope", "/a/b/x-1/y.scope"));
    EXPECT_FALSE(path_matches("/a?b", "/a/b"));
    EXPECT_FALSE(path_matches("/a[!x]b", "/a/b"));
}

TEST(Glob, SetsAndEscapes) {
    EXPECT_TRUE(text_matches("[a-c]1", "b1"));
    EXPECT_FALSE(text_matches("[!a-c]1", "b1"));
    EXPECT_TRUE(text_matches("[]x]", "]"));
    EXPECT_TRUE(text_matches("[a-]", "-"));
    EXPECT_TRUE(text_matches("\\*", "*"));
    EXPECT_FALSE(text_matches("\\*", "x"));
}

TEST(Glob, MistakesAreRefused) {
    for (const char* pattern : {"", "[", "[a", "[]", "a[z-a]", "a\\"}) {
        const auto glob = Glob::parse(pattern, Glob::Of::kText);
        ASSERT_FALSE(glob.has_value()) << pattern;
        EXPECT_FALSE(glob.error().message.empty());
    }
}

// What it means, without a thought for cost.
bool reference(std::string_view pattern, std::string_view text) {
    if (pattern.empty()) return text.empty();
    if (pattern.front() == '*') {
        const bool is_wide = pattern.starts_with("**");
        const std::string_view rest = pattern.substr(is_wide ? 2 : 1);
        for (std::size_t taken = 0; taken <= text.size(); ++taken) {
            if (reference(rest, text.substr(taken))) return true;
            if (!is_wide && taken < text.size() && text[taken] == '/') return false;
        }
        return false;
    }
    return !text.empty() && pattern.front() == text.front() && reference(pattern.substr(1), text.substr(1));
}

TEST(Glob, AgreesWithItsMeaningOnRandomPaths) {
    std::mt19937 random(7);
    const auto draw = [&random](std::string_view letters, std::size_t most) {
        std::string text;
        for (std::size_t left = random() % (most + 1); left > 0; --left)
            text += letters[random() % letters.size()];
        return text;
    };
    int matched = 0;
    for (int round = 0; round < 100'000; ++round) {
        std::string pattern = "a";
        for (std::size_t parts = random() % 5; parts > 0; --parts) {
            pattern += random() % 3 == 0 ? "**" : "*";
            pattern += draw("ab/", 2) + "b";
        }
        const std::string text = "a" + draw("ab/", 10);
        const bool expected = reference(pattern, text);
        matched += expected ? 1 : 0;
        ASSERT_EQ(path_matches(pattern, text), expected) << pattern << " on " << text;
    }
    EXPECT_GT(matched, 1000);
}

TEST(Glob, PatternOfManyStarsIsNoTrap) {
    std::string pattern;
    for (int i = 0; i < 30; ++i) pattern += "a*";
    EXPECT_FALSE(text_matches(pattern + "b", std::string(4096, 'a')));
    EXPECT_FALSE(path_matches(pattern + "b", std::string(4096, 'a')));
}

}  // namespace
}  // namespace memtide::agent
