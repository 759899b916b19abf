#include "fabric-manager/rest/from_json.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

std::string code_of(std::string_view body) {
    const auto request = read_composition_request(body);
    return request ? "" : request.error().code;
}

TEST(CompositionRequestJson, AllMembersAreRead) {
    const auto request = read_composition_request(
        R"({"host":"host0","size":"256MiB","tenant":"t1","labels":{"app":"redis"},"ttl":"10min"})");
    ASSERT_TRUE(request) << request.error().detail;
    EXPECT_EQ(request->host, HostId("host0"));
    EXPECT_EQ(request->size, mebibytes(256));
    EXPECT_EQ(request->tenant, "t1");
    EXPECT_EQ(request->labels.at("app"), "redis");
    EXPECT_EQ(request->ttl, std::chrono::seconds(600));
}

TEST(CompositionRequestJson, SizesAreBytesOrText) {
    EXPECT_EQ(read_composition_request(R"({"host":"h","size":268435456})")->size, mebibytes(256));
    EXPECT_EQ(read_composition_request(R"({"host":"h","size":0})")->size, Bytes{0});
    EXPECT_EQ(read_composition_request(R"({"host":"h","size":"1.5GiB","ttl":60})")->ttl,
              std::chrono::seconds(60));
    for (const auto* size :
         {"1.5", "\"256MB\"", "\"\"", "true", "[]", "{}", "null", "1e300", "18446744073709551615"})
        EXPECT_EQ(code_of(std::string(R"({"host":"h","size":)") + size + "}"), "invalid-request") << size;
}

TEST(CompositionRequestJson, NegativeSizesHaveACodeOfTheirOwn) {
    for (const auto* size : {"-1", "-268435456", "-0.5", "\"-256MiB\"", "-1e30"})
        EXPECT_EQ(code_of(std::string(R"({"host":"h","size":)") + size + "}"), "size-negative") << size;
}

TEST(CompositionRequestJson, WhatIsNotJsonIsInvalidJson) {
    for (const auto* body : {"", " ", "{", "{\"host\":}", "nonsense", "{} {}", "{\"host\":\"h\",}",
                             "\xff\xfe", "{\"host\":\"\xc3\x28\",\"size\":1}"})
        EXPECT_EQ(code_of(body), "invalid-json") << body;
    EXPECT_EQ(code_of(std::string(100'000, '[')), "invalid-json");
}

TEST(CompositionRequestJson, NamesAndLabelsHaveNoControlCharacters) {
    for (const auto* more :
         {R"("tenant":"t\u001b[31m")", R"("labels":{"a\n":"b"})", R"("labels":{"a":"b\u007f"})"})
        EXPECT_EQ(code_of(std::string(R"({"host":"h","size":1,)") + more + "}"), "invalid-request") << more;
}
TEST(CompositionRequestJson, WhatIsNoRequestIsInvalidAndNamesTheMember) {
    for (const auto* body :
         {"[]", "1", "null", "\"x\"", "{}", R"({"host":"h"})", R"({"size":1})", R"({"host":7,"size":1})",
          R"({"host":"h","size":1,"labels":[]})", R"({"host":"h","size":1,"labels":{"a":1}})",
          R"({"host":"h","size":1,"ttl":0})", R"({"host":"h","size":1,"ttl":-5})",
          R"({"host":"h","size":1,"ttl":"500ms"})", R"({"host":"h","size":1,"tenant":{}})"})
        EXPECT_EQ(code_of(body), "invalid-request") << body;
    EXPECT_NE(
        read_composition_request(R"({"host":"h","size":1,"labels":{"a":1}})").error().detail.find("labels"),
        std::string::npos);
}

TEST(CompositionRequestJson, MisspeltMembersAreRefusedNotIgnored) {
    const auto request = read_composition_request(R"({"host":"h","size":1,"tll":60})");
    ASSERT_FALSE(request);
    EXPECT_EQ(request.error().code, "invalid-request");
    EXPECT_NE(request.error().detail.find("tll"), std::string::npos);
}

TEST(CompositionRequestJson, WaysMeanInterleavingUnlessAPolicyIsNamed) {
    const auto kind_of = [](const std::string& members) {
        return read_composition_request(R"({"host":"h","size":1)" + members + "}")->placement.kind;
    };
    EXPECT_EQ(kind_of(R"(,"ways":2)"), PlacementKind::kBandwidth);
    EXPECT_EQ(kind_of(R"(,"ways":2,"placement":null)"), PlacementKind::kBandwidth);
    EXPECT_EQ(kind_of(R"(,"ways":2,"placement":{"reprovide":true})"), PlacementKind::kBandwidth);
    EXPECT_EQ(kind_of(R"(,"ways":2,"placement":{"policy":"spread"})"), PlacementKind::kSpread);
    EXPECT_EQ(kind_of(R"(,"ways":1,"placement":{"reprovide":true})"), PlacementKind::kPack);
    EXPECT_EQ(kind_of(""), PlacementKind::kPack);
}

TEST(CompositionRequestJson, OneMistakeIsToldOnce) {
    const auto wrong = read_composition_request(R"({"host":"h","size":1,"placement":[]})");
    ASSERT_FALSE(wrong);
    const std::string& detail = wrong.error().detail;
    EXPECT_EQ(detail.find("must be an object"), detail.rfind("must be an object")) << detail;
    const auto percent =
        read_composition_request(R"({"host":"h","size":1,"placement":{"max_percent_per_device":0}})");
    ASSERT_FALSE(percent);
    EXPECT_EQ(percent.error().detail.find("max_percent_per_device"),
              percent.error().detail.rfind("max_percent_per_device"));
}

TEST(CompositionRequestJson, LabelsAreBounded) {
    std::string labels;
    for (int i = 0; i < 65; ++i) labels += (i == 0 ? "" : ",") + ("\"k" + std::to_string(i)) + "\":\"v\"";
    EXPECT_EQ(code_of(R"({"host":"h","size":1,"labels":{)" + labels + "}}"), "invalid-request");
    EXPECT_EQ(code_of(R"({"host":"h","size":1,"labels":{"k":")" + std::string(256, 'x') + "\"}}"),
              "invalid-request");
    EXPECT_EQ(code_of(R"({"host":"h","size":1,"labels":{"":"v"}})"), "invalid-request");
}

TEST(CompositionRequestJson, TheFingerprintIsOfWhatIsAskedNotOfItsSpelling) {
    const auto print = [](std::string_view body) { return fingerprint(*read_composition_request(body)); };
    const std::string one = print(R"({"host":"h","size":268435456,"labels":{"a":"1","b":"2"}})");
    EXPECT_EQ(one, print(R"( {"labels": {"b":"2","a":"1"}, "size":"256MiB", "host":"h", "tenant": null} )"));
    EXPECT_NE(one, print(R"({"host":"h","size":536870912,"labels":{"a":"1","b":"2"}})"));
    EXPECT_NE(one, print(R"({"host":"g","size":268435456,"labels":{"a":"1","b":"2"}})"));
    EXPECT_NE(one, print(R"({"host":"h","size":268435456,"labels":{"a":"1","b":"3"}})"));
    EXPECT_NE(one, print(R"({"host":"h","size":268435456,"labels":{"a":"1","b":"2"},"ttl":5})"));
    EXPECT_NE(one, print(R"({"host":"h","size":268435456,"labels":{"a":"1","b":"2"},"tenant":"t"})"));
}

TEST(ObservedJson, AFullReportIsRead) {
    const auto report = read_observed_report(R"({
        "agent_version":"0.1.0","boot_id":"b1","revision_seen":12,"new_in_a_later_agent":true,
        "memdevs":[{"name":"mem0","serial":"0x4d54000100000001","size":268435456}],
        "windows":[{"name":"decoder0.0","ways":2,"size":4294967296,"largest_free":268435456}],
        "regions":[{"composition":"c-1","region":2,"serials":["0x4d54000100000001"],"state":"draining","node":1,
            "name":"region0","online_bytes":134217728,"error":{"code":"busy","detail":"held"},
            "holders":[{"block":"memory32","pid":12,"command":"redis","bytes":4096},
                       {"block":"memory33","pid":null}]}],
        "warnings":[{"code":"auto-online","detail":"the distribution onlines memory by itself"}]})");
    ASSERT_TRUE(report) << report.error().detail;
    EXPECT_EQ(report->boot_id, "b1");
    EXPECT_EQ(report->revision_seen, 12U);
    ASSERT_EQ(report->memdevs.size(), 1U);
    EXPECT_EQ(report->memdevs[0].serial.value, 0x4d54000100000001ULL);
    EXPECT_EQ(report->windows, (std::vector<HostWindow>{{"decoder0.0", 2, gibibytes(4), mebibytes(256)}}));
    ASSERT_EQ(report->regions.size(), 1U);
    const ObservedRegion& c = report->regions[0];
    EXPECT_EQ(c.id, (RegionId{CompositionId("c-1"), 2}));
    EXPECT_EQ(c.state, ObservedState::kDraining);
    EXPECT_EQ(c.node, 1);
    EXPECT_EQ(c.region, "region0");
    EXPECT_EQ(c.online_bytes, mebibytes(128));
    EXPECT_EQ(c.error->code, "busy");
    ASSERT_EQ(c.holders.size(), 2U);
    EXPECT_EQ(c.holders[0].pid, 12);
    EXPECT_FALSE(c.holders[1].pid);
    EXPECT_EQ(report->warnings[0].code, "auto-online");
}

TEST(ObservedJson, SaysWhatWasReadBack) {
    const auto with = [](const std::string& members) {
        return read_observed_report(
            R"({"boot_id":"b","regions":[{"composition":"c","region":0,"serials":["0x1","0x2"],"state":"failed",)" +
            members + "}]}");
    };
    const auto clean = with(R"("verified_pages":256)");
    ASSERT_TRUE(clean) << clean.error().detail;
    EXPECT_EQ(clean->regions[0].verified_pages, 256U);
    EXPECT_TRUE(clean->regions[0].not_erased.empty());
    const auto dirty = with(R"("not_erased":["0x2"])");
    ASSERT_TRUE(dirty) << dirty.error().detail;
    EXPECT_EQ(dirty->regions[0].not_erased, (std::vector<SerialNumber>{{2}}));
    EXPECT_TRUE(with(R"("not_erased":null,"verified_pages":null)"));
    for (const auto* wrong : {R"("not_erased":true)", R"("not_erased":["x"])", R"("verified_pages":-1)",
                              R"("not_erased":["1","2","3","4","5","6","7","8","9"])"})
        EXPECT_FALSE(with(wrong)) << wrong;
}

TEST(ObservedJson, WrongReportsAreRefusedAndNameTheMember) {
    for (
        const auto* body :
        {"[]", "{}", R"({"boot_id":1})", R"({"boot_id":"b","revision_seen":-1})",
         R"({"boot_id":"b","regions":{}})", R"({"boot_id":"b","regions":[{}]})",
         R"({"boot_id":"b","regions":[{"composition":"c","region":0,"serials":["0x1"],"state":"flying"}]})",
         R"({"boot_id":"b","regions":[{"composition":"c","region":0,"serials":[1.5],"state":"online"}]})",
         R"({"boot_id":"b","regions":[{"composition":"c","region":0,"serials":["0x1"],"state":"online","node":-1}]})",
         R"({"boot_id":"b","regions":[{"composition":"c","region":0,"serials":["0x1"],"state":"online","node":99999999999}]})",
         R"({"boot_id":"b","memdevs":[{"name":"mem0","serial":"0x1","size":-1}]})"}) {
        const auto report = read_observed_report(body);
        ASSERT_FALSE(report) << body;
        EXPECT_EQ(report.error().code, "invalid-request") << body;
    }
    const auto report = read_observed_report(
        R"({"boot_id":"b","regions":[{"composition":"c","region":0,"serials":["0x1"],"state":"flying"}]})");
    EXPECT_NE(report.error().detail.find("regions[0].state"), std::string::npos) << report.error().detail;
}

}  // namespace
}  // namespace memtide::fm
