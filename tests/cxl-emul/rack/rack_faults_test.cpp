// Two booted hosts, and processes that die. The cases share them and run in this order.
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/cxl-emul/rack/rack_run.h"
#include "tests/support/loopback_server.h"

namespace memtide::emul {
namespace {

using testing::HasSubstr;

class RackFaults : public testing::Test {
  protected:
    static void TearDownTestSuite() { rack_.reset(); }
    void SetUp() override {
        if (const auto why = RackRun::missing(); !why.empty()) GTEST_SKIP() << why;
        if (!rack_) {
            RackRunOptions options;
            options.hosts = 2;
            options.network = true;
            rack_ = std::make_unique<RackRun>(options);
        }
    }
    static RackRun& rack() { return *rack_; }
    // Whichever case comes first boots it.
    static void be_up() {
        if (std::filesystem::exists(rack().run_folder() + "/control.sock")) return;
        const auto up = rack().up();
        ASSERT_EQ(up.exit.code, 0) << up.standard_error;
    }
    static int pid_of(const boost::json::value& what) { return static_cast<int>(what.at("pid").as_int64()); }

    static std::unique_ptr<RackRun> rack_;
};
std::unique_ptr<RackRun> RackFaults::rack_;

TEST_F(RackFaults, PortInUseIsSaidAndLeavesNothingBehind) {
    const test::LoopbackServer taken;
    RackRun refused;
    refused.write_topology("tcp://" + taken.address());
    const auto up = refused.up();
    EXPECT_EQ(up.exit.code, 1);
    EXPECT_THAT(up.standard_error, HasSubstr(taken.address()));
    EXPECT_THAT(up.standard_error, HasSubstr("in use"));
    EXPECT_FALSE(std::filesystem::exists(refused.run_folder()));
}

TEST_F(RackFaults, HostThatIsNotReadyInTimeTakesTheRackDownAgain) {
    RackRun slow;
    const auto up = slow.up({"--timeout", "1", "--append", "memtide.test=slow"});
    EXPECT_EQ(up.exit.code, 1);
    EXPECT_THAT(up.standard_error, HasSubstr("not every host is ready after 1 s"));
    EXPECT_THAT(up.standard_error, HasSubstr("taken down again"));
    EXPECT_EQ(slow.rack("status", {}).exit.code, 1);
}

TEST_F(RackFaults, GuestThatPanicsEarlyIsReportedByUp) {
    RackRun panics;
    const auto up = panics.up({"--append", "rdinit=/nonexistent root=/dev/none"});
    EXPECT_EQ(up.exit.code, 1);
    EXPECT_THAT(up.standard_error, HasSubstr("host host0 is panicked: Kernel panic"));
}

TEST_F(RackFaults, RackGoesDownWithTheProcessThatWantedIt) {
    RackRun tied;
    auto up = tied.command("up", {"--timeout", "100"});
    process::Command sleeper;
    sleeper.argv = {"sleep", "1000"};
    auto wanted = process::Child::spawn(sleeper);
    ASSERT_TRUE(wanted);
    up.argv.insert(up.argv.end(), {"--while", std::to_string(wanted->pid())});
    up.standard_output = process::Stream::null();
    up.standard_error = process::Stream::null();
    auto running = process::Child::spawn(up);
    ASSERT_TRUE(running);
    for (int i = 0; i < 600 && !std::filesystem::exists(tied.run_folder() + "/control.sock"); ++i)
        ::usleep(100'000);
    const auto supervisor = pid_of(tied.status());
    ASSERT_TRUE(wanted->kill());
    ASSERT_TRUE(wanted->wait_for(std::chrono::seconds(60)));
    EXPECT_TRUE(RackRun::all_gone({supervisor}));
    EXPECT_TRUE(running->wait_for(std::chrono::seconds(60)));
}

TEST_F(RackFaults, UpThatIsTerminatedTakesTheRackDownAtOnce) {
    RackRun ended;
    auto up = ended.command("up", {"--while", std::to_string(::getpid())});
    up.standard_output = process::Stream::null();
    up.standard_error = process::Stream::null();
    auto running = process::Child::spawn(up);
    ASSERT_TRUE(running);
    for (int i = 0; i < 600 && !std::filesystem::exists(ended.run_folder() + "/control.sock"); ++i)
        ::usleep(100'000);
    const auto supervisor = pid_of(ended.status());
    ::kill(running->pid(), SIGTERM);
    const auto exit = running->wait_for(std::chrono::seconds(60));
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 128 + SIGTERM);
    EXPECT_TRUE(RackRun::all_gone({supervisor}));
}

TEST_F(RackFaults, NetworkCarriesRdmaBetweenTheHosts) {
    ASSERT_NO_FATAL_FAILURE(be_up());
    EXPECT_THAT(rack().shell("ip -o address show dev rdma0"), HasSubstr("10.77.0.1/24"));
    EXPECT_THAT(rack().shell("cat /sys/class/net/rdma0/mtu"), "4200");
    for (const char* host : {"host0", "host1"})
        EXPECT_THAT(rack().exec(host, {"rdma", "link", "show"}).standard_output,
                    HasSubstr("link rxe0/1 state ACTIVE physical_state LINK_UP netdev rdma0"));
    EXPECT_THAT(rack().rack("status", {}).standard_output, HasSubstr("rdma0    host0 host1"));
    if (std::system("command -v ib_read_lat >/dev/null 2>&1") != 0)
        GTEST_SKIP() << "perftest and ibverbs-providers are not installed; run scripts/setup";
    // One-sided reads: host0 reads the memory of host1 by its rkey.
    std::thread server(
        [] { rack().exec("host1", {"timeout", "60", "ib_read_lat", "-d", "rxe0", "-x", "1", "-n", "5"}); });
    const auto read = rack().exec("host0", {"sh", "-c",
                                            "for i in $(seq 50); do ib_read_lat -d rxe0 -x 1 -n 5 -s 4096 "
                                            "host1 && exit 0; sleep 0.3; done; exit 1"});
    server.join();
    EXPECT_EQ(read.exit.code, 0) << read.standard_error;
    EXPECT_THAT(read.standard_output, HasSubstr("4096"));
}

// What the guest's own kernel makes of it: its driver reads the device's event log and its poison list.
TEST_F(RackFaults, PoisonAndMediaErrorsReachTheGuestsDriver) {
    ASSERT_NO_FATAL_FAILURE(be_up());
    ASSERT_EQ(rack().rack("bind", {"host0", "0", "mld0:0"}).exit.code, 0);
    ASSERT_TRUE(rack().wait_for("test -e /sys/bus/cxl/devices/mem0/trigger_poison_list"));
    rack().shell("echo 1 > /sys/kernel/tracing/events/cxl/enable");
    rack().inject({"media-error", "device=mld0", "severity=fatal", "offset=8192"});
    EXPECT_TRUE(
        rack().wait_for("grep -q 'cxl_general_media.*log=Fatal.*dpa=2000' /sys/kernel/tracing/trace"));
    rack().inject({"poison", "device=mld0", "offset=4096", "length=128"});
    EXPECT_TRUE(
        rack().wait_for("echo 1 > /sys/bus/cxl/devices/mem0/trigger_poison_list; "
                        "grep -q 'cxl_poison.*dpa=0x1000 dpa_length=0x80' /sys/kernel/tracing/trace"));
}

TEST_F(RackFaults, CardWhoseLinkIsDownIsGoneFromTheGuestAndComesBack) {
    ASSERT_NO_FATAL_FAILURE(be_up());
    ASSERT_TRUE(rack().wait_for("test -e /sys/bus/cxl/devices/mem0"));
    rack().inject({"link-down", "device=mld0", "for=3s"});
    EXPECT_TRUE(rack().wait_for("! test -e /sys/bus/cxl/devices/mem0"));
    EXPECT_TRUE(rack().wait_for("test -e /sys/bus/cxl/devices/mem0"));
    ASSERT_EQ(rack().rack("unbind", {"host0", "0"}).exit.code, 0);
    EXPECT_TRUE(rack().wait_for("! test -e /sys/bus/cxl/devices/mem0"));
}

TEST_F(RackFaults, QemuThatDiesIsShownAndItsDevicesAreFreeForOthers) {
    ASSERT_NO_FATAL_FAILURE(be_up());
    ASSERT_EQ(rack().rack("bind", {"host1", "0", "mld0:0"}).exit.code, 0);
    ::kill(pid_of(rack().host_status(1)), SIGKILL);
    const auto vppb_states = [] {
        std::string states;
        const auto status = rack().status();
        for (const auto& vppb : status.at("switches").at(0).at("vppbs").as_array())
            states += std::string(vppb.at("state").as_string()) + " ";
        return states;
    };
    const std::string all_free = "unbound unbound unbound unbound ";
    for (int i = 0; i < 600 && vppb_states() != all_free; ++i) ::usleep(100'000);
    EXPECT_EQ(vppb_states(), all_free);
    EXPECT_EQ(rack().host_status(1).at("state").as_string(), "stopped");
    EXPECT_THAT(std::string(rack().host_status(1).at("detail").as_string()), HasSubstr("signal 9"));
    EXPECT_THAT(rack().rack("bind", {"host1", "0", "mld0:0"}).standard_error,
                HasSubstr("host1 does not run"));
    EXPECT_EQ(rack().rack("bind", {"host0", "0", "mld0:0"}).exit.code, 0);
}

TEST_F(RackFaults, SupervisorKilledLeavesNoQemuAndTheNextUpCleansUp) {
    const auto supervisor = pid_of(rack().status());
    const auto qemu = pid_of(rack().host_status(0));
    ::kill(supervisor, SIGKILL);
    EXPECT_TRUE(RackRun::all_gone({supervisor, qemu}));
    EXPECT_THAT(rack().rack("status", {}).standard_error, HasSubstr("no rack runs"));
    EXPECT_TRUE(std::filesystem::exists(rack().run_folder() + "/control.sock"));  // what it left

    const auto up = rack().up({"--timeout", "1"});
    EXPECT_THAT(up.standard_error, HasSubstr("not every host is ready"));  // so it did start
}

}  // namespace
}  // namespace memtide::emul
