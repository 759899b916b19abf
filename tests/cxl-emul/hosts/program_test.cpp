// `memtide-cxl-emul hosts` from outside.
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/process/child.h"
#include "fabric-manager/app/config.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class HostsProgram : public testing::Test {
  protected:
    static process::Command command(std::vector<std::string> words) {
        process::Command command;
        command.argv = {MEMTIDE_CXL_EMUL, "hosts"};
        command.argv.insert(command.argv.end(), words.begin(), words.end());
        return command;
    }
    static process::Output run(std::vector<std::string> words) {
        auto output = process::run(command(std::move(words)), 60s);
        EXPECT_TRUE(output.has_value());
        return output.value_or(process::Output());
    }
    [[nodiscard]] std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
    [[nodiscard]] std::string content(const std::string& name) const {
        std::ifstream stream(file(name));
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    void run_topology(const std::string& topology, const std::string& ready, std::size_t hosts) {
        process::Command one =
            command({"--topology", MEMTIDE_CONFIG "/topologies/" + topology, "--listen",
                     "unix://" + folder_.path(), "--manager", "unix:" + file("manager.sock"), "--state",
                     file("state.db"), "--write-config", file("fm.yaml")});
        one.standard_output = process::Stream::file(file("out"), false);
        auto child = process::Child::spawn(one);
        ASSERT_TRUE(child.has_value());
        for (int i = 0; i < 3000 && content("out").find("start the manager") == std::string::npos; ++i)
            std::this_thread::sleep_for(10ms);
        EXPECT_THAT(content("out"), HasSubstr(ready));
        const auto config = fm::load_config(file("fm.yaml"));
        ASSERT_TRUE(config.has_value()) << config.error().message;
        EXPECT_EQ(config->manager.hosts.size(), hosts);
        ASSERT_TRUE(child->terminate().has_value());
        EXPECT_TRUE(child->wait_for(60s).has_value());
    }

    TemporaryFolder folder_;
};

TEST_F(HostsProgram, BadOptionsEndItWithCode2AndWhatIsWrong) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
        {{}, "--count"},
        {{"--count", "1", "--topology", "x.yaml"}, "--topology"},
        {{"--topology", "/no/such.yaml"}, "/no/such.yaml"},
        {{"--count", "0"}, "--count: must be a whole number of at least 1, not 0"},
        {{"--count", "x"}, "--count"},
        {{"--count", "-1"}, "at least 1, not -1"},
        {{"--count", "100001"}, "1 to 100000 hosts, not 100001"},
        {{"--count", "4", "--heads", "0"}, "--heads: must be a whole number of at least 1, not 0"},
        {{"--count", "4", "--heads", "-1"}, "--heads: must be a whole number of at least 1, not -1"},
        {{"--count", "99", "--switches", "99", "--heads", "99"}, "heads, not 99"},
        {{"--count", "4", "--switches", "3", "--heads", "2"}, "3 switches are no multiple of 2 heads"},
        {{"--count", "1", "--colour", "red"}, "--colour"},
        {{"--count", "1", "--kind", "tape"}, "--kind"},
        {{"--count", "2", "--switches", "2", "--heads", "2", "--kind", "dcd"}, "a DCD has one head"},
        {{"--count", "1", "--ld-size", "100MB"}, "--ld-size"},
        {{"--count", "1", "--online-delay", "fast"}, "--online-delay"},
        {{"--count", "1", "--bind-time", "1"}, "--bind-time"},
        {{"--count", "1", "--fault", "gremlins"}, "refuses-offline"},
        {{"--count", "1", "--fault", "reboot=2"}, "share"},
        {{"--count", "1", "--listen", "tcp://0.0.0.0:1"}, "loopback"},
        {{"--count", "1", "--manager", "ftp://x"}, "--manager"},
        {{"--count", "1", "--ca", "ca.pem"}, "--ca is for a manager at https://"},
        {{"--count", "1", "--agent-certs", "."}, "--agent-certs is for a manager at https://"},
        {{"--count", "1", "--manager", "https://127.0.0.1:1", "--write-config", "x"}, "needs --agent-certs"},
        {{"--count", "9", "--fault", "wrong-certificate"}, "needs certificates: --agent-certs"},
        {{"--count", "300", "--switches", "1"}, "ports"}};
    for (const auto& [words, expected] : wrong) {
        const process::Output output = run(words);
        EXPECT_EQ(output.exit.code, 2) << expected;
        EXPECT_THAT(output.standard_error + output.standard_output, HasSubstr(expected));
    }
}

TEST_F(HostsProgram, HelpNamesEveryFault) {
    const process::Output output = run({"--help"});
    EXPECT_EQ(output.exit.code, 0);
    for (const std::string_view fault : {"reboot", "silence", "refuses-offline", "reports-for-another",
                                         "wrong-certificate", "refuses-capacity"})
        EXPECT_THAT(output.standard_output, HasSubstr(std::string(fault)));
}

TEST_F(HostsProgram, WritesAConfigurationForTheManagerAndEndsAtASignal) {
    process::Command one =
        command({"--count", "40", "--listen", "unix://" + folder_.path(), "--manager",
                 "unix:" + file("manager.sock"), "--state", file("state.db"), "--write-config",
                 file("fm.yaml"), "--control", "unix:" + file("control.sock")});
    one.standard_output = process::Stream::file(file("out"), false);
    auto child = process::Child::spawn(one);
    ASSERT_TRUE(child.has_value());
    for (int i = 0; i < 3000 && content("out").find("start the manager") == std::string::npos; ++i)
        std::this_thread::sleep_for(10ms);
    EXPECT_THAT(content("out"), HasSubstr("40 hosts, 2 switches"));
    const auto config = fm::load_config(file("fm.yaml"));
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->manager.hosts.size(), 40U);
    EXPECT_EQ(access(file("switch1.sock").c_str(), F_OK), 0);
    ASSERT_TRUE(child->terminate().has_value());
    const auto exit = child->wait_for(60s);
    ASSERT_TRUE(exit.has_value());
    EXPECT_TRUE(exit->succeeded()) << exit->describe();
    EXPECT_NE(access(file("switch1.sock").c_str(), F_OK), 0);
    EXPECT_NE(access(file("control.sock").c_str(), F_OK), 0);
}

TEST_F(HostsProgram, RunsTheHostsAndSwitchesOfATopologyFile) {
    run_topology("sparse-pod.yaml", "8 hosts, 8 switches", 8);
}

TEST_F(HostsProgram, RunsHostsWithADynamicCapacityDevice) {
    run_topology("one-switch-one-dcd.yaml", "2 hosts, 1 switch", 2);
}

TEST_F(HostsProgram, APortThatIsTakenIsAnErrorThatNamesIt) {
    const TestSwitch taken;
    const process::Output output =
        run({"--count", "1", "--listen", taken.tcp(), "--manager", "unix:" + file("manager.sock")});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_THAT(output.standard_error, HasSubstr("already in use"));
}

}  // namespace
}  // namespace memtide::emul::test
