// One booted host, from `rack up` to its panic. The cases share it and run in this order.
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/cxl-emul/rack/rack_run.h"
#include "tests/support/loopback_server.h"

namespace memtide::emul {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr const char* kSerialOfLd1 = "0x4d54000100000002";
constexpr const char* kMemdevIsThere =
    "[ -e /sys/bus/cxl/devices/mem0/serial -o -e /sys/bus/cxl/devices/mem1/serial ]";
constexpr const char* kMemdevIsGone = "! ls /sys/bus/cxl/devices | grep -q '^mem[0-9]'";

// Answers each connection with "hello NUMBER\n", in the place of a manager.
class Greeter {
  public:
    [[nodiscard]] std::string address() const { return server_.address(); }

  private:
    int number_ = 0;
    test::LoopbackServer server_{[this](int peer) {
        const auto text = fmt::format("hello {}\n", ++number_);
        [[maybe_unused]] const auto sent = ::send(peer, text.data(), text.size(), MSG_NOSIGNAL);
    }};
};

class RackLife : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (!RackRun::missing().empty()) return;
        manager_ = std::make_unique<Greeter>();
        RackRunOptions options;
        options.manager = manager_->address();
        rack_ = std::make_unique<RackRun>(options);
        const auto up = rack_->up();
        ready_ = up.exit.code == 0;
        EXPECT_EQ(up.exit.code, 0) << up.standard_error;
        EXPECT_THAT(up.standard_error, HasSubstr("host0 ready in"));  // progress, as plain lines
        EXPECT_THAT(up.standard_output, ContainsRegex("rack test is up, with(out)? KVM.*: host0 ready in"));
    }
    static void TearDownTestSuite() {
        rack_.reset();
        manager_.reset();
    }
    void SetUp() override {
        if (const auto why = RackRun::missing(); !why.empty()) GTEST_SKIP() << why;
        ASSERT_TRUE(ready_) << "the rack did not come up";
    }
    static RackRun& rack() { return *rack_; }
    static void bind(const char* device = "mld0:1") {
        const auto bound = rack().rack("bind", {"host0", "1", device});
        ASSERT_EQ(bound.exit.code, 0) << bound.standard_error;
        ASSERT_TRUE(rack().wait_for(kMemdevIsThere)) << rack().shell("dmesg | tail -n 40");
    }
    static void expect_unbound() {
        EXPECT_TRUE(rack().wait_for(kMemdevIsGone));
        const auto status = rack().status();
        for (const auto& vppb : status.at("switches").at(0).at("vppbs").as_array())
            EXPECT_EQ(vppb.at("state").as_string(), "unbound");
    }

    static std::unique_ptr<Greeter> manager_;
    static std::unique_ptr<RackRun> rack_;
    static bool ready_;
};
std::unique_ptr<Greeter> RackLife::manager_;
std::unique_ptr<RackRun> RackLife::rack_;
bool RackLife::ready_ = false;

TEST_F(RackLife, StatusShowsTheReadyHost) {
    const auto host = rack().host_status(0);
    EXPECT_EQ(host.at("state").as_string(), "ready");
    EXPECT_GT(host.at("boot_seconds").as_double(), 0.0);
    EXPECT_THAT(std::string(host.at("kernel").as_string()), HasSubstr("6."));
    EXPECT_THAT(rack().rack("status", {}).standard_output, HasSubstr("host0  ready"));
}

TEST_F(RackLife, SecondUpIsRefusedWithThePid) {
    const auto again = rack().up();
    EXPECT_EQ(again.exit.code, 1);
    EXPECT_THAT(again.standard_error,
                HasSubstr(fmt::format("already running (pid {})", rack().status().at("pid").as_int64())));
    EXPECT_EQ(rack().host_status(0).at("state").as_string(), "ready");
}

TEST_F(RackLife, ExecKeepsStreamsAndExitCodeApart) {
    const auto output = rack().exec("host0", {"sh", "-c", "echo out; echo err >&2; exit 7"});
    EXPECT_EQ(output.exit.code, 7);
    EXPECT_EQ(output.standard_output, "out\n");
    EXPECT_EQ(output.standard_error, "err\n");
    EXPECT_EQ(rack().exec("host0", {"sh", "-c", "kill -9 $$"}).exit.code, 137);
    EXPECT_EQ(rack().exec("host0", {"memtide-no-such-program"}).exit.code, 127);
    const auto nowhere = rack().exec("host9", {"true"});
    EXPECT_EQ(nowhere.exit.code, 125);
    EXPECT_EQ(nowhere.standard_error, "rack exec: no host named host9; there is host0\n");
}

TEST_F(RackLife, ExecCarriesMoreThanAWindowBothWays) {
    std::string sent;
    for (int i = 0; sent.size() < 1'500'000; ++i) sent += std::to_string(i) + "\n";
    const auto output = rack().exec("host0", {"cat"}, sent);
    EXPECT_EQ(output.exit.code, 0);
    EXPECT_TRUE(output.standard_output == sent) << output.standard_output.size();
}

TEST_F(RackLife, SeveralCommandsRunAtOnce) {
    // The first two wait for each other through files: neither ends unless both run.
    std::string first;
    std::string second;
    std::thread other([&first] {
        first = rack().shell("touch /tmp/one; until [ -e /tmp/two ]; do sleep 0.05; done; echo first");
    });
    second = rack().shell("touch /tmp/two; until [ -e /tmp/one ]; do sleep 0.05; done; echo second");
    other.join();
    EXPECT_EQ(first + second, "firstsecond");
}

TEST_F(RackLife, GuestSeesTheHostsFilesAndCannotChangeThem) {
    EXPECT_EQ(rack().shell("head -n 1 " + rack().topology()), "name: test");
    EXPECT_EQ(rack().shell("echo changed >" + rack().topology() + "; cat " + rack().topology()), "changed");
    EXPECT_GT(std::filesystem::file_size(rack().topology()), 20U);
    EXPECT_EQ(rack().shell("hostname"), "host0");
}

TEST_F(RackLife, GuestReachesTheManagerAndNothingElse) {
    constexpr auto kAsk = "for i in 1 2 3; do cat </dev/tcp/10.0.2.101/8080; done";
    EXPECT_EQ(rack().shell("echo $MEMTIDE_URL"), "http://10.0.2.101:8080");
    const auto asked = rack().exec("host0", {"bash", "-c", kAsk});
    EXPECT_EQ(asked.standard_output, "hello 1\nhello 2\nhello 3\n") << asked.standard_error;
    for (const char* other : {"10.0.2.2/8080", "10.0.2.101/22"}) {
        const auto refused = rack().exec(
            "host0", {"timeout", "20", "bash", "-c", fmt::format("cat </dev/tcp/{} && echo reached", other)});
        EXPECT_NE(refused.exit.code, 0) << other;
        EXPECT_EQ(refused.standard_output, "") << other;
    }
}

TEST_F(RackLife, BindBecomesAMemdevWithTheSerialOfTheLd) {
    bind();
    EXPECT_EQ(rack().shell("cat /sys/bus/cxl/devices/mem*/serial"), kSerialOfLd1);
    EXPECT_EQ(rack().shell("cat /sys/bus/cxl/devices/mem*/ram/size"), "0x10000000");
    EXPECT_THAT(rack().rack("status", {}).standard_output, HasSubstr("mld0:1"));
}

TEST_F(RackLife, BindOfWhatIsBoundIsRefusedInWords) {
    EXPECT_THAT(rack().rack("bind", {"host0", "0", "mld0:1"}).standard_error,
                HasSubstr("bound already, to vPPB 1"));
    EXPECT_THAT(rack().rack("bind", {"host0", "1", "mld0:0"}).standard_error,
                HasSubstr("already has mld0:1"));
    EXPECT_THAT(rack().rack("bind", {"host0", "2", "mld0:0"}).standard_error, HasSubstr("vPPBs 0 to 1"));
}

TEST_F(RackLife, UnbindOfNothingIsRefusedInWords) {
    const auto refused = rack().rack("unbind", {"host0", "0"});
    EXPECT_EQ(refused.exit.code, 1);
    EXPECT_EQ(refused.standard_error, "rack: nothing is bound at vPPB 0 of host0\n");
}

TEST_F(RackLife, GuestMakesTheMemoryANodeAndMayKeepItAsLongAsItUsesIt) {
    constexpr auto kRegion = R"(set -e; cd /sys/bus/cxl/devices
        region=$(cat decoder0.0/create_ram_region); echo $region >decoder0.0/create_ram_region
        number=$(ls -d endpoint* | tail -n 1); number=${number#endpoint}
        echo ram >decoder$number.0/mode; echo 0x10000000 >decoder$number.0/dpa_size
        echo 256 >$region/interleave_granularity; echo 1 >$region/interleave_ways; echo 0x10000000 >$region/size
        echo decoder$number.0 >$region/target0; echo 1 >$region/commit
        echo $region >/sys/bus/cxl/drivers/cxl_region/bind
        numactl -H)";
    EXPECT_THAT(rack().shell(kRegion), HasSubstr("node 1 size: 25"));
    for (const char* how : {"--managed", ""}) {
        std::vector<std::string> words{"host0", "1"};
        if (*how) words.emplace_back(how);
        const auto refused = rack().rack("unbind", words);
        EXPECT_EQ(refused.exit.code, 1) << how;
        EXPECT_THAT(refused.standard_error, HasSubstr("region0 of mem")) << how;
        EXPECT_THAT(refused.standard_error, HasSubstr("is in use")) << how;
        const bool waits = *how == '\0';
        EXPECT_EQ(refused.standard_error.find("rack: waiting: region0 of mem") == 0, waits)
            << refused.standard_error;
    }
    EXPECT_THAT(rack().shell("numactl -H"), HasSubstr("node 1 size: 25"));
    // Refused, the guest can still use it.
    rack().shell("numactl --membind=1 dd if=/dev/zero of=/dev/null bs=64k count=1");
}

TEST_F(RackLife, UnbindFollowsWhenTheGuestHasLetGo) {
    rack().shell(
        R"(set -e; for block in /sys/devices/system/node/node1/memory[0-9]*; do echo offline >$block/state; done
        echo dax0.0 >/sys/bus/dax/drivers/kmem/unbind; cd /sys/bus/cxl/devices
        echo 0 >region0/commit; echo region0 >decoder0.0/delete_region)");
    const auto unbound = rack().rack("unbind", {"host0", "1"});
    EXPECT_EQ(unbound.exit.code, 0) << unbound.standard_error;
    expect_unbound();
}

TEST_F(RackLife, ManagedUnbindGoesThroughTheAttentionButton) {
    bind();
    const auto unbound = rack().rack("unbind", {"host0", "1", "--managed"});
    EXPECT_EQ(unbound.exit.code, 0) << unbound.standard_error;
    EXPECT_THAT(rack().shell("dmesg | tail -n 30"), HasSubstr("Button press: will power off"));
    expect_unbound();
}

TEST_F(RackLife, SurpriseUnbindPullsTheCard) {
    bind("mld0:0");
    const auto unbound = rack().rack("unbind", {"host0", "1", "--surprise"});
    EXPECT_EQ(unbound.exit.code, 0) << unbound.standard_error;
    expect_unbound();
    EXPECT_THAT(rack().shell("dmesg | tail -n 30"), HasSubstr("Card not present"));
}

TEST_F(RackLife, ConsoleIsAShellOfTheGuest) {
    // The quotes keep the terminal's echo of the command from looking like its output.
    process::Command command;
    command.argv = {
        "sh", "-c",
        fmt::format("(sleep 1; for i in $(seq 100); do echo 'echo con''sole-$(hostname)'; sleep 0.3; done) | "
                    "timeout 100 {} rack console {} --run-dir {} host0 | grep -m 1 -o 'console-host0'",
                    MEMTIDE_CXL_EMUL, rack().topology(), rack().run_folder())};
    const auto console = process::run(std::move(command), std::chrono::seconds(120));
    ASSERT_TRUE(console) << console.error().message;
    EXPECT_EQ(console->standard_output, "console-host0\n");
}

TEST_F(RackLife, HelperThatDiesIsStartedAgain) {
    rack().exec("host0", {"sh", "-c", "kill -9 $(pidof memtide-cxl-emul)"});
    for (int i = 0; i < 600; ++i) {
        if (rack().host_status(0).at("state").as_string() == "ready" &&
            rack().exec("host0", {"true"}).exit.code == 0)
            break;
        ::usleep(100'000);
    }
    EXPECT_EQ(rack().shell("echo back"), "back");
}

TEST_F(RackLife, PanicIsReportedAndSurpriseStillTakesTheDeviceBack) {
    bind();
    rack().exec("host0", {"sh", "-c", "echo c >/proc/sysrq-trigger"});
    for (int i = 0; i < 600 && rack().host_status(0).at("state").as_string() != "panicked"; ++i)
        ::usleep(100'000);
    const auto host = rack().host_status(0);
    EXPECT_EQ(host.at("state").as_string(), "panicked");
    EXPECT_EQ(rack().exec("host0", {"true"}).exit.code, 125);
    const auto managed = rack().rack("unbind", {"host0", "1", "--managed"});
    EXPECT_EQ(managed.exit.code, 1);
    EXPECT_THAT(managed.standard_error, HasSubstr("has panicked and cannot let go"));
    EXPECT_EQ(rack().rack("unbind", {"host0", "1", "--surprise"}).exit.code, 0);
    const auto status = rack().status();
    for (const auto& vppb : status.at("switches").at(0).at("vppbs").as_array())
        EXPECT_EQ(vppb.at("state").as_string(), "unbound");
    // And the rack still goes down in good order.
    const auto pid = static_cast<int>(host.at("pid").as_int64());
    const auto down = rack().rack("down", {});
    EXPECT_EQ(down.exit.code, 0);
    EXPECT_THAT(down.standard_output,
                HasSubstr("rack test is down\nwhat the devices hold stays in /dev/shm/"));
    EXPECT_TRUE(RackRun::all_gone({pid}));
    EXPECT_THAT(rack().rack("down", {"--wipe"}).standard_output, HasSubstr("-test-mld0.media"));
}

}  // namespace
}  // namespace memtide::emul
