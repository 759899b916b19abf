// `memtide-cxl-emul fault` against a switch that runs, and what it says about mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/daemons.h"
#include "tests/integration/eventually.h"
#include "tests/integration/rest_client.h"

namespace memtide::test {
namespace {

using ::testing::HasSubstr;

struct Ran {
    int code = -1;
    std::string out;
    std::string err;
};

class FaultCommand : public testing::Test {
  protected:
    Ran run(std::vector<std::string> words) {
        process::Command command;
        command.argv = std::move(words);
        command.argv.insert(command.argv.begin(), MEMTIDE_CXL_EMUL);
        command.standard_output = process::Stream::file(folder_.file("out"), false);
        command.standard_error = process::Stream::file(folder_.file("err"), false);
        auto child = process::Child::spawn(command);
        if (!child) return {};
        const auto exit = child->wait_for(std::chrono::seconds(60));
        return {exit ? exit->shell_code() : -1, read_file(folder_.file("out")),
                read_file(folder_.file("err"))};
    }
    Ran fault(std::vector<std::string> words) {
        words.insert(words.begin(), "fault");
        words.insert(words.begin() + 2, {"--control", control_});
        return run(std::move(words));
    }
    void start(std::vector<std::string> more = {}) {
        const std::string file = folder_.file("topology.yaml");
        write_file(file, topology_yaml(folder_, {}));
        std::vector<std::string> argv{MEMTIDE_CXL_EMUL, "switch", file, "--control", control_};
        argv.insert(argv.end(), more.begin(), more.end());
        switch_.emplace(std::move(argv), folder_.file("switch.out"), "listening on");
    }

    TempFolder folder_;
    std::string control_ = "unix:" + folder_.file("control.sock");
    std::optional<Daemon> switch_;
};

TEST_F(FaultCommand, AFaultIsBegunListedAndCleared) {
    start();
    EXPECT_EQ(fault({"inject", "link-down", "port=2"}).out, "fault 1\n");
    EXPECT_EQ(fault({"inject", "error", "opcode=bind-vppb", "code=busy", "times=3"}).out, "fault 2\n");
    const Ran list = fault({"list"});
    EXPECT_THAT(list.out, HasSubstr("1  active        0 hits  {fault: link-down, port: 2}"));
    EXPECT_THAT(list.out, HasSubstr("2  active        0 hits  {fault: error, times: 3, seed: "));
    EXPECT_EQ(fault({"clear", "1"}).code, 0);
    EXPECT_THAT(fault({"list"}).out, HasSubstr("1  over "));
    EXPECT_EQ(fault({"clear", "1"}).code, 1);
    EXPECT_EQ(fault({"clear"}).code, 0);
    EXPECT_THAT(fault({"list", "--json"}).out, HasSubstr("\"active\":0"));
}

TEST_F(FaultCommand, WhatCannotHappenIsRefusedByTheSwitch) {
    start();
    const Ran port = fault({"inject", "link-down", "port=77"});
    EXPECT_EQ(port.code, 2);
    EXPECT_THAT(port.err, HasSubstr("switch0 has no port 77"));
    const Ran kind = fault({"inject", "link-dwon", "port=2"});
    EXPECT_EQ(kind.code, 2);
    EXPECT_THAT(kind.err, HasSubstr("did you mean \"link-down\"?"));
    EXPECT_THAT(fault({"inject", "silence", "for"}).err, HasSubstr("\"for\" is no KEY=VALUE"));
}

// On the same control interface.
TEST_F(FaultCommand, VirtualSwitchesAndBandwidthAreChangedWithoutHostsToo) {
    start();
    RestClient control(control_);
    const std::string at = "/v1/switches/switch0";
    EXPECT_EQ(control.call("PUT", at + "/vcss/0?vppbs=6").status, 204U);
    EXPECT_EQ(control.call("PUT", at + "/vcss/0?vppbs=0").status, 422U);
    EXPECT_EQ(control.call("PUT", at + "/vcss/0?vppbs=7&enabled=false").status, 422U);
    EXPECT_EQ(control.call("DELETE", at + "/vcss/77").status, 404U);
    EXPECT_EQ(control.call("PUT", at + "/devices/mld0/lds/0?demand=4GiB").status, 204U);
    EXPECT_THAT(control.get(at + "/devices/mld0/bandwidth").body, HasSubstr("\"demand\":4294967296"));
    EXPECT_EQ(control.get("/v1/switches/switch7/devices/mld0/bandwidth").status, 404U);
}

TEST_F(FaultCommand, WithoutASwitchItSaysWhereNobodyIs) {
    const Ran list = fault({"list"});
    EXPECT_EQ(list.code, 1);
    EXPECT_THAT(list.err, HasSubstr(control_));
}

TEST_F(FaultCommand, ASwitchStartsWithAScenario) {
    write_file(folder_.file("s.yaml"),
               "scenario:\n  - {fault: silence, times: 1}\n  - {at: 1h, fault: worn, port: 2}\n");
    start({"--scenario", folder_.file("s.yaml")});
    EXPECT_THAT(fault({"list"}).out, HasSubstr("active"));
    EXPECT_THAT(fault({"list"}).out, HasSubstr("waiting"));
    EXPECT_EQ(switch_->terminate().code, 0);
}

TEST_F(FaultCommand, ACheckNamesEveryMistakeAtItsPlace) {
    const std::string file = folder_.file("s.yaml");
    const std::string topology = folder_.file("topology.yaml");
    write_file(topology, topology_yaml(folder_, {}));
    write_file(file,
               "scenario:\n  - {at: 1s, fault: link-down, port: 9}\n  - {fault: silence, opcode: bnd}\n");
    const Ran alone = run({"fault", "check", file});
    EXPECT_EQ(alone.code, 2);
    EXPECT_EQ(alone.err, file + ":3:30: \"bnd\" is no command: bind-vppb, 5201h or 0x5201\n");
    const std::string port = file + ":2:38: switch0 has no port 9\n";
    EXPECT_EQ(run({"fault", "check", file, "--topology", topology}).err, port + alone.err);
    const Ran with_switch = run({"switch", topology, "--scenario", file, "--check-config"});
    EXPECT_EQ(with_switch.code, 2);
    EXPECT_EQ(with_switch.err, port + alone.err);
    EXPECT_THAT(run({"fault", "check", file + "x"}).err, HasSubstr(file + "x: No such file"));
}

TEST_F(FaultCommand, AControlAddressThatIsNotLoopbackIsRefused) {
    const std::string file = folder_.file("topology.yaml");
    write_file(file, topology_yaml(folder_, {}));
    const Ran open = run({"switch", file, "--control", "0.0.0.0:0"});
    EXPECT_EQ(open.code, 1);
    EXPECT_THAT(open.err, HasSubstr("not a loopback address"));
}

TEST_F(FaultCommand, AllKindsAreListed) {
    const Ran kinds = run({"fault", "kinds"});
    EXPECT_EQ(kinds.code, 0);
    for (const char* const name : {"link-down", "lying-device", "hang-up"})
        EXPECT_THAT(kinds.out, HasSubstr(name));
}

}  // namespace
}  // namespace memtide::test
