#include "tiering-agent/fabric/messages.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

const HostId kHost{"host0"};

std::string desired_with(std::string_view composition) {
    return R"({"revision":12,"host":"host0","regions":[)" + std::string(composition) + "]}";
}
constexpr std::string_view kComposition =
    R"({"composition":"c-1","region":0,"serials":["0x4d54000100000001"],"size":268435456,"desired":"online","force":false,"drain_deadline":null})";

TEST(DesiredState, IsReadInFull) {
    const auto desired = parse_desired(
        desired_with(
            R"({"composition":"c-1","region":0,"serials":["0x4d54000100000001"],"size":268435456,"desired":"offline","force":true,)"
            R"("drain_deadline":"2026-11-29T18:00:00.250Z","new_field":[1]})"),
        kHost);
    ASSERT_TRUE(desired.has_value()) << desired.error().message;
    EXPECT_EQ(desired->revision, 12U);
    ASSERT_EQ(desired->regions.size(), 1U);
    const auto& composition = desired->regions[0];
    EXPECT_EQ(composition.id.composition.value, "c-1");
    EXPECT_EQ(composition.serials.at(0).value, 0x4d54000100000001U);
    EXPECT_EQ(composition.size, mebibytes(256));
    EXPECT_EQ(composition.want, Want::kOffline);
    EXPECT_TRUE(composition.force);
    EXPECT_EQ(composition.drain_deadline, *parse_time("2026-11-29T18:00:00Z") + 250ms);
}

TEST(DesiredState, OptionalFieldsMayBeAbsentOrNull) {
    for (
        const std::string_view text :
        {kComposition,
         std::string_view(
             R"({"composition":"c-1","region":0,"serials":["1"],"size":268435456,"desired":"online"})"),
         std::string_view(
             R"({"composition":"c-1","region":0,"serials":["1"],"size":268435456,"desired":"online","force":null})")})
        EXPECT_TRUE(parse_desired(desired_with(text), kHost).has_value()) << text;
}

TEST(DesiredState, MayAskForReadingBack) {
    const auto with = [](std::string_view verify) {
        return desired_with(
            R"({"composition":"c-1","region":0,"serials":["1"],"size":268435456,"desired":"online","verify_erased":)" +
            std::string(verify) + "}");
    };
    const auto plain = parse_desired(with(R"({"samples":256})"), kHost);
    ASSERT_TRUE(plain.has_value()) << plain.error().message;
    EXPECT_EQ(plain->regions[0].verify, (Verification{.samples = 256}));
    const auto uniform = parse_desired(with(R"({"samples":1,"pattern":"uniform","later":true})"), kHost);
    ASSERT_TRUE(uniform.has_value()) << uniform.error().message;
    EXPECT_EQ(uniform->regions[0].verify->pattern, ErasedPattern::kUniform);
    EXPECT_FALSE(parse_desired(with("null"), kHost)->regions[0].verify.has_value());
    for (const std::string_view wrong : {"true", "{}", R"({"samples":0})", R"({"samples":65537})",
                                         R"({"samples":8,"pattern":"ones"})", R"({"samples":8,"pattern":1})"})
        EXPECT_FALSE(parse_desired(with(wrong), kHost).has_value()) << wrong;
}

TEST(DesiredState, OfAnotherHostIsNotUsed) {
    const auto desired = parse_desired(desired_with(kComposition), HostId{"host1"});
    ASSERT_FALSE(desired.has_value());
    EXPECT_EQ(desired.error().code, ErrorCode::kConflict);
    EXPECT_NE(desired.error().message.find("host0"), std::string::npos);
}

TEST(DesiredState, GarbageIsRefusedWithTheFieldsName) {
    const std::string list[][2] = {
        {"", "JSON"},
        {"{", "JSON"},
        {"[]", "object"},
        {"null", "object"},
        {"\xff\xfe", "JSON"},
        {std::string(100'000, '['), "JSON"},
        {R"({"revision":1,"regions":[]})", "host"},
        {R"({"host":7,"revision":1,"regions":[]})", "host"},
        {R"({"host":"host0","revision":-1,"regions":[]})", "revision"},
        {R"({"host":"host0","revision":1.5,"regions":[]})", "revision"},
        {R"({"host":"host0","revision":1,"regions":{}})", "regions"},
        {R"({"host":"host0","revision":1})", "regions"},
        {desired_with("7"), "regions"},
        {desired_with(R"({"region":0,"serials":["1"],"size":268435456,"desired":"online"})"), "composition"},
        {desired_with(R"({"composition":"","region":0,"serials":["1"],"size":268435456,"desired":"online"})"),
         "composition"},
        {desired_with(R"({"composition":"c","region":0,"serials":[1],"size":268435456,"desired":"online"})"),
         "serials"},
        {desired_with(
             R"({"composition":"c","region":0,"serials":["zz"],"size":268435456,"desired":"online"})"),
         "serials"},
        {desired_with(R"({"composition":"c","region":0,"serials":["1"],"size":0,"desired":"online"})"),
         "size"},
        {desired_with(R"({"composition":"c","region":0,"serials":["1"],"size":1000,"desired":"online"})"),
         "size"},
        {desired_with(
             R"({"composition":"c","region":0,"serials":["1"],"size":18446744073441116160,"desired":"online"})"),
         "size"},
        {desired_with(R"({"composition":"c","region":0,"serials":["1"],"size":"256MiB","desired":"online"})"),
         "size"},
        {desired_with(R"({"composition":"c","region":0,"serials":["1"],"size":268435456,"desired":"on"})"),
         "desired"},
        {desired_with(
             R"({"composition":"c","region":0,"serials":["1"],"size":268435456,"desired":"online","force":1})"),
         "force"},
        {desired_with(
             R"({"composition":"c","region":0,"serials":["1"],"size":268435456,"desired":"online","drain_deadline":5})"),
         "drain_deadline"},
        {desired_with(
             R"({"composition":"c","region":0,"serials":["1"],"size":268435456,"desired":"online","drain_deadline":"soon"})"),
         "soon"},
    };
    for (const auto& [text, mentioned] : list) {
        const auto desired = parse_desired(text, kHost);
        ASSERT_FALSE(desired.has_value()) << text.substr(0, 100);
        EXPECT_EQ(desired.error().code, ErrorCode::kProtocol);
        EXPECT_NE(desired.error().message.find(mentioned), std::string::npos) << desired.error().message;
    }
}

TEST(DesiredState, IdOrSerialTwiceIsRefused) {
    const std::string one(kComposition);
    EXPECT_FALSE(parse_desired(desired_with(one + "," + one), kHost).has_value());
    const std::string same_serial =
        R"({"composition":"c-2","region":0,"serials":["0x4d54000100000001"],"size":268435456,"desired":"offline"})";
    EXPECT_FALSE(parse_desired(desired_with(one + "," + same_serial), kHost).has_value());
}

TEST(ObservedState, IsWrittenAsTheManagerReadsIt) {
    Observed observed{
        .revision_seen = 12,
        .memdevs = {{.name = "mem0", .serial = {0x4d54000100000001}, .ram_size = mebibytes(256)}},
        .warnings = {{"not-aligned", "x"}}};
    observed.regions = {{.id = {CompositionId{"c-1"}, 0},
                         .serials = {{0x4d54000100000001}},
                         .status = RegionStatus::kDraining,
                         .node = 1,
                         .region = "region0",
                         .online = mebibytes(128),
                         .error = Finding{"still-held", "busy"},
                         .holders = {{.block = "memory32",
                                      .pid = 7,
                                      .command = "re\xff"
                                                 "dis\n",
                                      .bytes = {4096}},
                                     {.block = "memory32", .command = "page cache", .bytes = {8192}}}},
                        {.id = {CompositionId{"c-2"}, 0}, .serials = {{2}}, .status = RegionStatus::kAbsent}};
    const std::string text = format_observed(observed, {.version = "1.0", .boot_id = "boot"});
    EXPECT_EQ(json::parse(text), json::parse(
                                     R"({"agent_version":"1.0","boot_id":"boot","revision_seen":12,
                "memdevs":[{"name":"mem0","serial":"0x4d54000100000001","size":268435456}],
                "windows":[],
                "regions":[
                  {"composition":"c-1","region":0,"serials":["0x4d54000100000001"],"state":"draining","node":1,"name":"region0",
                   "online_bytes":134217728,"error":{"code":"still-held","detail":"busy"},
                   "holders":[{"block":"memory32","pid":7,"command":"re?dis?","bytes":4096},
                              {"block":"memory32","pid":null,"command":"page cache","bytes":8192}]},
                  {"composition":"c-2","region":0,"serials":["0x0000000000000002"],"state":"absent","node":null,"name":null,
                   "online_bytes":0,"error":null,"holders":[]}],
                "warnings":[{"code":"not-aligned","detail":"x"}]})"))
        << text;
}

TEST(Time, IsReadWithFractionAndOffset) {
    const auto base = *parse_time("2026-11-29T18:00:00Z");
    EXPECT_EQ(base, WallTime{std::chrono::sys_days{std::chrono::year{2026} / 11 / 29} + 18h});
    EXPECT_EQ(*parse_time("2026-11-29T19:30:00.5+01:30"), base + 500ms);
    EXPECT_EQ(*parse_time("2026-11-29t17:00:00-01:00"), base);
    for (const char* bad : {"", "2026", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
                            "2026-11-29T24:00:00Z", "2026-11-29T18:00:00", "2026-11-29T18:00:00Zjunk",
                            "2026-11-29T18:00:00.Z", "-026-11-29T18:00:00Z", "9999-11-29T18:00:00Z"})
        EXPECT_FALSE(parse_time(bad).has_value()) << bad;
}

}  // namespace
}  // namespace memtide::agent
