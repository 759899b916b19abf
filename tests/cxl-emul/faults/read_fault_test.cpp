#include "cxl-emul/faults/read_fault.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/faults/fault_table.h"
#include "cxl-emul/faults/scenario.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Topology known_topology() { return parse_topology(test_topology("/tmp"), "topology.yaml").value(); }

std::string mistake_in(const std::string& text) {
    const Topology topology = known_topology();
    const auto fault = parse_fault(text, "f", &topology);
    return fault ? "" : fault.error().message;
}

TEST(ReadFault, ReadsWhatAFaultHas) {
    const auto fault = parse_fault(
        "{fault: error, opcode: bind-vppb, code: busy, times: 3, skip: 1, probability: 0.5, seed: 9, for: "
        "2s}",
        "f", nullptr);
    ASSERT_TRUE(fault) << fault.error().message;
    EXPECT_EQ(fault->kind, FaultKind::kError);
    EXPECT_EQ(fault->opcode, fmapi::Opcode::kBindVppb);
    EXPECT_EQ(fault->code, fmapi::ReturnCode::kBusy);
    EXPECT_EQ(fault->times, 3U);
    EXPECT_EQ(fault->skip, 1U);
    EXPECT_EQ(fault->probability, 0.5);
    EXPECT_EQ(fault->seed, 9U);
    EXPECT_EQ(fault->lasts, milliseconds(2000));
}

TEST(ReadFault, JsonIsRead) {
    const auto fault = parse_fault(R"({"fault": "link-down", "port": 3, "for": "5s"})", "f", nullptr);
    ASSERT_TRUE(fault) << fault.error().message;
    EXPECT_EQ(fault->port, 3);
}

TEST(ReadFault, OpcodesAndCodesMayBeNumbers) {
    for (const char* const text :
         {"{fault: error, opcode: 0x5201, code: 0x6}", "{fault: error, opcode: 5201h, code: 06h}"}) {
        const auto fault = parse_fault(text, "f", nullptr);
        ASSERT_TRUE(fault) << fault.error().message;
        EXPECT_EQ(fault->opcode, fmapi::Opcode::kBindVppb);
        EXPECT_EQ(fault->code, fmapi::ReturnCode::kBusy);
    }
}

TEST(ReadFault, MistakesHaveAPlaceAndAHint) {
    EXPECT_EQ(mistake_in("{fault: link-dwon, port: 2}"),
              "f:1:9: there is no fault \"link-dwon\"; did you mean \"link-down\"?");
    EXPECT_EQ(mistake_in("{fault: error, opcode: bind-vpb}"),
              "f:1:24: \"bind-vpb\" is no command: bind-vppb, 5201h or 0x5201; did you mean \"bind-vppb\"?");
    EXPECT_EQ(mistake_in("{fault: error, code: bussy}"),
              "f:1:22: \"bussy\" is no return code: busy, 06h or 0x6; did you mean \"busy\"?");
    EXPECT_EQ(mistake_in("{fault: error, code: success}"), "f:1:22: success is no error");
    EXPECT_EQ(mistake_in("{fault: silence, probabilty: 0.5}"),
              "f:1:18: unknown key \"probabilty\"; did you mean \"probability\"?");
    EXPECT_EQ(mistake_in("{fault: silence, probability: 1.5}"),
              "f:1:31: must be a probability above 0, and at most 1");
    EXPECT_EQ(mistake_in("{fault: silence, for: 5}"), "f:1:23: \"5\" has no unit: write 5s, 5ms, 5min or 5h");
    EXPECT_EQ(mistake_in("{fault: stuck-operation, operation: bnd}"),
              "f:1:37: \"bnd\" is none of bind, unbind, sanitize");
}

TEST(ReadFault, AKindRefusesTheKeysOfOthersAndMissesItsOwn) {
    EXPECT_EQ(mistake_in("{fault: link-down, port: 2, code: busy}"),
              "f:1:35: a fault of kind link-down has no \"code\"");
    EXPECT_EQ(mistake_in("{fault: late}"), "f:1:1: missing \"delay\"");
    EXPECT_EQ(mistake_in("{fault: link-down}"),
              "f:1:1: link-down of what? It needs one of: port device host");
    EXPECT_EQ(mistake_in("{fault: poison, ld: 0}"), "f:1:1: poison of what? It needs one of: device port");
    EXPECT_EQ(mistake_in("{fault: link-down, port: 2, host: host0}"),
              "f:1:1: a fault happens to one of port, device and host");
    EXPECT_EQ(mistake_in("{fault: lying-device, device: mld0}"),
              "f:1:1: lying-device about what? It needs one of: serial lds ld_size capacity");
}

TEST(ReadFault, WhatIsNotThereIsNamed) {
    EXPECT_EQ(mistake_in("{fault: link-down, port: 9}"), "f:1:26: switch0 has no port 9");
    EXPECT_EQ(mistake_in("{fault: link-down, port: 4}"), "f:1:26: nothing is at port 4 of switch0");
    EXPECT_EQ(mistake_in("{fault: worn, port: 0}"), "f:1:21: at port 0 of switch0 is a host, and no device");
    EXPECT_EQ(mistake_in("{fault: worn, device: mld9}"), "f:1:23: there is no device \"mld9\"");
    EXPECT_EQ(mistake_in("{fault: link-down, host: host9}"),
              "f:1:26: no host \"host9\" is attached to any switch");
    EXPECT_EQ(mistake_in("{fault: silence, switch: other}"), "f:1:26: there is no switch \"other\"");
    EXPECT_EQ(mistake_in("{fault: poison, device: mld0, ld: 7}"), "f:1:35: device mld0 has LDs 0 to 3");
}

TEST(ReadScenario, EveryMistakeOfAFileIsReported) {
    const Topology topology = known_topology();
    const auto scenario = parse_scenario(
        "sead: 1\nscenario:\n  - {at: 2s, fault: link-down, port: 9}\n  - {at: soon, fault: worn, device: "
        "mld0}\n",
        "s.yaml", &topology);
    ASSERT_FALSE(scenario);
    EXPECT_EQ(scenario.error().message,
              "s.yaml:1:1: unknown key \"sead\"; did you mean \"seed\"?\n"
              "s.yaml:3:38: switch0 has no port 9\n"
              "s.yaml:4:10: \"soon\" must be a duration such as 250ms, 2s, 5min or 1h");
}

TEST(ReadScenario, FaultsWithoutASeedGetOneOfTheScenarios) {
    const std::string text =
        "scenario:\n  - {fault: silence}\n  - {fault: silence}\n  - {fault: silence, seed: 5}\n";
    const auto one = parse_scenario("seed: 7\n" + text, "s", nullptr);
    const auto again = parse_scenario("seed: 7\n" + text, "s", nullptr);
    const auto other = parse_scenario("seed: 8\n" + text, "s", nullptr);
    ASSERT_TRUE(one && again && other);
    EXPECT_EQ(one->faults, again->faults);
    EXPECT_NE(one->faults[0].fault.seed, one->faults[1].fault.seed);
    EXPECT_NE(one->faults[0].fault.seed, other->faults[0].fault.seed);
    EXPECT_EQ(one->faults[2].fault.seed, 5U);
    const auto steady = parse_scenario("scenario: [{fault: link-down, port: 2}]", "s", nullptr);
    ASSERT_TRUE(steady) << steady.error().message;
    EXPECT_EQ(steady->faults[0].fault.seed, std::nullopt) << "it draws nothing";
}

TEST(ReadScenario, AnEmptyOneAndNoneAreRefused) {
    for (const char* const text : {"scenario: []", "seed: 3", "scenario: 5", "scenario: [7]"}) {
        const auto scenario = parse_scenario(text, "s", nullptr);
        ASSERT_FALSE(scenario) << text;
        EXPECT_THAT(scenario.error().message, HasSubstr("s:1:"));
    }
}

TEST(ReadScenario, TheExamplesFitTheTopologyTheyAreWrittenFor) {
    const auto topology = load_topology(MEMTIDE_CONFIG "/topologies/one-switch-one-mld.yaml");
    ASSERT_TRUE(topology);
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(MEMTIDE_CONFIG "/scenarios")) {
        const auto scenario = load_scenario(entry.path().string(), &*topology);
        EXPECT_TRUE(scenario) << scenario.error().message;
        ++files;
    }
    EXPECT_GE(files, 10U);
}

TEST(FaultTable, EachKindStandsAtItsPlaceAndIsFoundByItsName) {
    for (std::size_t i = 0; i < kFaultTable.size(); ++i) {
        EXPECT_EQ(static_cast<std::size_t>(kFaultTable.at(i).kind), i);
        EXPECT_EQ(parse_fault_kind(kFaultTable.at(i).name), kFaultTable.at(i).kind);
    }
}

}  // namespace
}  // namespace memtide::emul::test
