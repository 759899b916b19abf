#include "tiering-agent/policy/targets.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

const Process kRedis{.id = {812, 5000},
                     .parent = 1,
                     .uid = 112,
                     .comm = "redis-server",
                     .exe = "/usr/bin/redis-server",
                     .command = "/usr/bin/redis-server *:6379",
                     .cgroup = "/system.slice/redis.service",
                     .unit = "redis.service"};

Glob path(const char* pattern) { return *Glob::parse(pattern, Glob::Of::kPath); }
Glob text(const char* pattern) { return *Glob::parse(pattern, Glob::Of::kText); }

TEST(ProcessMatch, OfNothingMatchesEverything) {
    EXPECT_TRUE(ProcessMatch{}.is_everything());
    EXPECT_TRUE(ProcessMatch{}.matches(kRedis));
    EXPECT_TRUE(ProcessMatch{}.matches(Process{}));
}

TEST(ProcessMatch, CgroupIsItsOwnOrOneAboveIt) {
    for (const char* pattern :
         {"/system.slice/redis.service", "/system.slice", "/*.slice", "/", "/**", "/system.slice/r*"})
        EXPECT_TRUE((ProcessMatch{.cgroups = {path(pattern)}}.matches(kRedis))) << pattern;
    for (const char* pattern : {"/system.slice/redis", "/user.slice", "/system.slice/*/*", "/redis.service"})
        EXPECT_FALSE((ProcessMatch{.cgroups = {path(pattern)}}.matches(kRedis))) << pattern;
    EXPECT_FALSE((ProcessMatch{.cgroups = {path("/")}}.matches(Process{})));
}

TEST(ProcessMatch, ExecutableByNameOrPath) {
    EXPECT_TRUE((ProcessMatch{.exes = {path("redis-*")}}.matches(kRedis)));
    EXPECT_TRUE((ProcessMatch{.exes = {path("/usr/bin/redis-server")}}.matches(kRedis)));
    EXPECT_FALSE((ProcessMatch{.exes = {path("/opt/**")}}.matches(kRedis)));
    EXPECT_FALSE((ProcessMatch{.exes = {path("*")}}.matches(Process{})));
}

TEST(ProcessMatch, OtherKeys) {
    EXPECT_TRUE((ProcessMatch{.units = {text("redis*.service")}}.matches(kRedis)));
    EXPECT_FALSE((ProcessMatch{.units = {text("*")}}.matches(Process{})));
    EXPECT_TRUE((ProcessMatch{.commands = {text("*:6379")}}.matches(kRedis)));
    EXPECT_TRUE((ProcessMatch{.command_regexes = {*Regex::parse(":63[0-9]+$")}}.matches(kRedis)));
    EXPECT_FALSE((ProcessMatch{.command_regexes = {*Regex::parse("^redis")}}.matches(kRedis)));
    EXPECT_TRUE((ProcessMatch{.uids = {0, 112}}.matches(kRedis)));
    EXPECT_FALSE((ProcessMatch{.uids = {0}}.matches(kRedis)));
    EXPECT_FALSE((ProcessMatch{.uids = {0}}.matches(Process{})));  // hidden is not root
    EXPECT_TRUE((ProcessMatch{.pids = {812}}.matches(kRedis)));
}

TEST(ProcessMatch, AllKeysMustHoldEachForOneAlternative) {
    ProcessMatch match{.units = {text("memcached.service"), text("redis.service")}, .uids = {112}};
    EXPECT_TRUE(match.matches(kRedis));
    match.uids = {0};
    EXPECT_FALSE(match.matches(kRedis));
}

TEST(Regex, MistakesAreRefused) {
    for (const char* pattern : {"", "(", "[", "a{3", "*)", "(a)\\1"})
        EXPECT_FALSE(Regex::parse(pattern).has_value()) << pattern;
    EXPECT_TRUE(Regex::parse("a\\\\1").has_value());
}

TEST(Regex, HugeOnesAreRefused) {
    for (const char* pattern :
         {"((a{99}){99}){99}", "a{1001}", "(a{2,50}b){0,50}", "a{99999999999999999999999}"})
        EXPECT_FALSE(Regex::parse(pattern).has_value()) << pattern;
    EXPECT_FALSE(Regex::parse(std::string(1025, 'a')).has_value());
    EXPECT_FALSE(Regex::parse(std::string(5000, '(')).has_value());
    EXPECT_TRUE(Regex::parse("(a{2,30}b){0,30}").has_value());
}

TEST(Regex, LongTextIsNoTrap) {
    const auto regex = Regex::parse("(a*)*b|(a|aa)+c");
    ASSERT_TRUE(regex.has_value());
    EXPECT_FALSE(regex->is_found_in(std::string(kCommandLimit, 'a')));
}

TEST(FastShare, IsOfTheCapacity) {
    EXPECT_EQ((FastShare{.percent = 25}.of(gibibytes(4))), gibibytes(1));
    EXPECT_EQ((FastShare{.percent = 100}.of(Bytes{999})), Bytes{999});
    EXPECT_EQ((FastShare{.percent = std::nullopt, .bytes = gibibytes(2)}.of(gibibytes(4))), gibibytes(2));
    EXPECT_EQ((FastShare{.percent = std::nullopt, .bytes = gibibytes(8)}.of(gibibytes(4))), gibibytes(4));
    EXPECT_EQ(to_string(FastShare{.percent = 25}), "25%");
}

TEST(Exclusion, AllThatIsGivenMustHold) {
    const Vma heap{.range = {0x1000, 0x5000},
                   .kind = VmaKind::kHeap,
                   .name = "[heap]",
                   .writable = true,
                   .is_private = true};
    EXPECT_TRUE((Exclusion{.kinds = {VmaKind::kStack, VmaKind::kHeap}}.matches(heap)));
    EXPECT_FALSE((Exclusion{.kinds = {VmaKind::kStack}}.matches(heap)));
    EXPECT_TRUE((Exclusion{.names = {text("?heap?")}}.matches(heap)));
    EXPECT_TRUE((Exclusion{.addresses = VirtualRange{0x4fff, 0x9000}}.matches(heap)));
    EXPECT_FALSE((Exclusion{.addresses = VirtualRange{0x5000, 0x9000}}.matches(heap)));
    EXPECT_TRUE((Exclusion{.at_least = Bytes{0x4000}, .at_most = Bytes{0x4000}}.matches(heap)));
    EXPECT_FALSE((Exclusion{.at_least = Bytes{0x4001}}.matches(heap)));
    EXPECT_FALSE((Exclusion{.at_most = Bytes{0x3fff}}.matches(heap)));
    EXPECT_FALSE((Exclusion{.kinds = {VmaKind::kHeap}, .at_most = Bytes{1}}.matches(heap)));
    EXPECT_EQ(to_string(Exclusion{.kinds = {VmaKind::kHeap}, .names = {text("a*")}, .at_most = mebibytes(1)}),
              "kind heap, name a*, at most 1MiB");
}

}  // namespace
}  // namespace memtide::agent
