#include "cxl-emul/switch/topology_findings.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string with(std::string text, const std::vector<std::pair<std::string, std::string>>& changes) {
    for (const auto& [what, by] : changes) {
        const std::size_t at = text.find(what);
        EXPECT_NE(at, std::string::npos) << what;
        text.replace(at, what.size(), by);
    }
    return text;
}
TopologyFindings of(const std::vector<std::pair<std::string, std::string>>& changes,
                    const HostCheck& host_check = {}) {
    return examine_topology_text(with(test::test_topology("/media"), changes), "rack.yaml", host_check);
}
std::string said(const std::vector<std::pair<std::string, std::string>>& changes) {
    return explain(of(changes));
}

TEST(TopologyFindings, GoodFileIsSummedUpInOneLine) {
    EXPECT_EQ(said({}), "rack.yaml: ok: 1 switch, 2 hosts, 2 devices with 1.25GiB\n");
}

TEST(TopologyFindings, MistakeComesWithItsLineWhatToDoAndWhatTheKeyMeans) {
    EXPECT_EQ(said({{"{id: 1, host: host1}", "{id: 0, host: host1}"}}),
              "rack.yaml:12:14: port 0 is there already, at rack.yaml:11:14\n"
              "     12 |       - {id: 0, host: host1}\n"
              "        |              ^\n"
              "     do: each port has an id of its own: 1 is free\n"
              "    key: id is the number of a physical port, 0 to 254\n"
              "\n"
              "rack.yaml: 1 mistake\n");
}

TEST(TopologyFindings, MistakesOfEveryKindAreToldAtOnce) {
    const TopologyFindings findings = of({{"bind_time: 0ms", "bind_tim: 0ms"},              // unknown key
                                          {"{id: 1, host: host1}", "{id: 1, host: hst1}"},  // no such host
                                          {"{id: 4}", "{id: 255}"},                         // out of range
                                          {"{id: 1, upstream_port: 1, vppbs: 4}", "{id: 1, vppbs: 4}"},
                                          {"granularity: 256MiB", "granularity: 300MiB"},
                                          {"serial: 0x50", "serial: 0x4d54000100000001"}});
    std::vector<std::string> messages;
    for (const YamlComplaint& one : findings.mistakes) messages.push_back(one.message);
    EXPECT_THAT(messages, testing::ElementsAre(HasSubstr("unknown key \"bind_tim\""),
                                               HasSubstr("no host \"hst1\""), HasSubstr("from 0 to 254"),
                                               "missing \"upstream_port\"", HasSubstr("granularity must be"),
                                               HasSubstr("meet those of device mld0")));
    EXPECT_THAT(explain(findings), HasSubstr("rack.yaml: 6 mistakes\n"));
    EXPECT_THAT(explain(findings), HasSubstr("did you mean host1?"));
    EXPECT_THAT(explain(findings), HasSubstr("0x4d54000200000000 and what follows is free"));
}

TEST(TopologyFindings, OneMistakeIsNotToldTwice) {
    // What hangs on a wrong value is not judged by its default: not the LDs by a wrong size, not ports by a
    // wrong list of devices, not the keys of a device by a wrong kind.
    for (const auto& [what, by] : std::vector<std::pair<std::string, std::string>>{
             {"size: 1GiB", "size: 1000MiB"},
             {"size: 1GiB", "size: large"},
             {"kind: mld", "kind: mlt"},
             {"granularity: 256MiB", "granularity: 2GiB"},
             {"[256MiB, 256MiB, 0, 0]", "[256MiB, lots, 0, 0]"},
             {"[256MiB, 256MiB, 0, 0]", "256MiB"},
             {"serial: 0x4d54000100000000", "serial: none"},
             {"name: mld0", "name: MLD_0"},
             {"{id: 2, device: mld0}", "{id: 2, device: mld9}"},
             {"{id: 0, host: host0}", "{id: zero, host: host0}"},
             {"{name: host1, memory", "{name: Host 1, memory"},
             {"\"tcp://127.0.0.1:0\"", "\"http://127.0.0.1:0\""}}) {
        const TopologyFindings findings = of({{what, by}});
        EXPECT_EQ(findings.mistakes.size(), 1U) << by << "\n" << explain(findings);
    }
}

TEST(TopologyFindings, EveryMistakeSaysWhatToDo) {
    for (const auto& [what, by] : std::vector<std::pair<std::string, std::string>>{
             {"{id: 2, device: mld0}", "{id: 2, host: host0, device: mld0}"},
             {"{id: 2, device: mld0}", "{id: 2, device: mld9}"},
             {"{id: 2, device: mld0}", "{id: 2, device: mld0, head: 1}"},
             {"upstream_port: 1", "upstream_port: 2"},
             {"upstream_port: 1", "upstream_port: 9"},
             {"vppbs: 4", "vppbs: four"},
             {"{id: 3, device: sld0}", "{id: 3}"},
             {"[256MiB, 256MiB, 0, 0]", "[256MiB, 100MiB, 0, 0]"},
             {"[256MiB, 256MiB, 0, 0]", "[256MiB, 2GiB, 0, 0]"},
             {"kind: sld", "kind: disk"},
             {"name: host1", "name: host0"},
             {"cpus: 2", "cpu: 2"}}) {
        const std::string text = said({{what, by}});
        EXPECT_TRUE(text.find("     do: ") != std::string::npos ||
                    text.find("    key: ") != std::string::npos)
            << text;
    }
}

TEST(TopologyFindings, WhatIsNoYamlIsShownWithTheLine) {
    const std::string text = said({{"{id: 4}", "{id: 4"}});
    EXPECT_THAT(text, HasSubstr("rack.yaml:17:7: illegal block entry\n     17 |       - {id: 0, "));
    EXPECT_THAT(text, HasSubstr("     do: a } or ] is missing before this"));
    EXPECT_THAT(said({{"    ports:", "\tports:"}}), HasSubstr("put spaces in its place"));
    EXPECT_THAT(explain(examine_topology_text("- a\n- b\n", "x", {})),
                HasSubstr("x:1:1: the file must be a map"));
}

TEST(TopologyFindings, FileThatCannotBeReadIsNamed) {
    EXPECT_EQ(explain(examine_topology("/no/such.yaml")), "/no/such.yaml: No such file or directory\n");
    EXPECT_FALSE(examine_topology("/").is_good());
}

TEST(TopologyFindings, TextOfTheFileCannotSteerTheTerminal) {
    const std::string text = said({{"kind: sld", "kind: \"\x1b[2J\""}});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, HasSubstr("\\x1b[2J"));
}

TEST(TopologyFindings, WhatIsHardlyMeantIsARemarkAndNoMistake) {
    const TopologyFindings findings = of({{"      - {id: 1, upstream_port: 1, vppbs: 4}\n", ""},
                                          {"  - {name: host1", "  - {name: host2}\n  - {name: host1"}});
    EXPECT_TRUE(findings.is_good());
    EXPECT_THAT(explain(findings), HasSubstr("rack.yaml:12:23: remark: host1 sees nothing behind port 1"));
    EXPECT_THAT(explain(findings), HasSubstr("remark: host2 is connected to nothing"));
}

TEST(TopologyFindings, WhatAHostCannotBearIsARemarkAtItsName) {
    const TopologyFindings findings = of({}, [](const Topology&, const HostConfig& host) -> Result<> {
        if (host.name.value == "host1") return fail(ErrorCode::kInvalidArgument, "too much");
        return {};
    });
    ASSERT_EQ(findings.remarks.size(), 1U);
    EXPECT_EQ(findings.remarks[0].message, "`rack up` refuses this: too much");
    EXPECT_EQ(findings.remarks[0].line, 30);
}

// The words behind "known here: ".
std::vector<std::string> known_keys(const std::string& advice) {
    std::istringstream words(advice.substr(advice.find(": ") + 2));
    std::vector<std::string> keys;
    for (std::string word; std::getline(words, word, ',');)
        keys.push_back(word.substr(word.find_first_not_of(' ')));
    return keys;
}

TEST(TopologyFindings, EveryKeyThatIsReadHasAMeaning) {
    const TopologyFindings findings = examine_topology_text(R"(zzz: 0
switches:
  - {zzz: 0, ports: [{zzz: 0, device: a, host: b}], vcss: [{zzz: 0}], devices: [{zzz: 0, kind: mld}]}
multi_headed_devices: [{zzz: 0}]
hosts: [{zzz: 0, devices: [{zzz: 0}], heads: [{zzz: 0}]}]
networks: [{zzz: 0}]
)",
                                                            "x");
    std::size_t maps = 0;
    for (const YamlComplaint& one : findings.mistakes) {
        if (!one.key_path.ends_with("zzz")) continue;
        ++maps;
        const std::string parent = one.key_path.substr(0, one.key_path.size() - 3);
        for (const std::string& key : known_keys(one.advice))
            EXPECT_NE(meaning_of_key(parent + key), "") << parent << key << ": add it to topology_help.cpp";
    }
    EXPECT_EQ(maps, 10U);
}

}  // namespace
}  // namespace memtide::emul
