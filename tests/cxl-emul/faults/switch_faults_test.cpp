// What faults do to a switch that runs, as a manager at its socket sees it.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "cxl-emul/faults/fault_plan.h"
#include "cxl-emul/faults/read_fault.h"
#include "tests/cxl-emul/switch/fake_hotplug.h"
#include "tests/cxl-emul/switch/manager.h"
#include "tests/cxl-emul/switch/over_both_transports.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;
using fmapi::VppbBinding;

class FaultySwitchProcess : public ::testing::Test {
  protected:
    Switch& sw() { return switch_.thread().get(); }
    void begin(const std::string& text) {
        const Topology topology = parse_topology(test_topology("/tmp"), "topology.yaml").value();
        Fault fault = parse_fault(text, "f", &topology).value();
        FaultPlace place = place_of(fault, topology).value();
        active_ = std::make_shared<ActiveFault>(std::move(fault), std::move(place), 1);
        auto plan = std::make_shared<FaultPlan>(topology.switches[0]);
        plan->add(active_);
        sw().disturb(plan);
    }
    // Posted behind everything that was asked of the switch so far.
    void settle() { (void)switch_.thread().vppbs(); }
    VppbBinding binding(std::uint8_t vcs, std::uint8_t vppb) {
        const auto state = switch_.thread().vppbs().at(std::size_t{4} * vcs + vppb).state;
        return state == VppbStatus::State::kBound     ? VppbBinding::kBoundLd
               : state == VppbStatus::State::kUnbound ? VppbBinding::kUnbound
                                                      : VppbBinding::kInProgress;
    }
    // A connection to a switch that may have no power yet.
    std::unique_ptr<Manager> connect_when_on() {
        for (int attempt = 0;; ++attempt) {
            auto manager = std::make_unique<Manager>(switch_.tcp());
            try {
                (void)manager->get<fmapi::Identify>();
                return manager;
            } catch (const std::exception&) {
                if (attempt > 1000) throw;
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
        }
    }

    std::shared_ptr<FakeHotplug> hosts_ = std::make_shared<FakeHotplug>();
    TestSwitch switch_{{}, hosts_};
    std::shared_ptr<ActiveFault> active_;
};

TEST_F(FaultySwitchProcess, ARefusedCommandIsNotCarriedOut) {
    begin("{fault: error, opcode: bind-vppb, code: busy, times: 1}");
    Manager manager(switch_.tcp());
    EXPECT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kBusy);
    EXPECT_EQ(binding(0, 0), VppbBinding::kUnbound);
    EXPECT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
}

TEST_F(FaultySwitchProcess, ASilentSwitchStillAnswersTheNextCommand) {
    begin("{fault: silence, opcode: identify-switch-device}");
    Manager manager(switch_.tcp());
    manager.send(fmapi::make_request(fmapi::Opcode::kIdentifySwitchDevice, 1));
    manager.send(fmapi::make_request(fmapi::Opcode::kIdentify, 2));
    EXPECT_EQ(manager.receive().message.tag, 2);
}

TEST_F(FaultySwitchProcess, AHangUpDropsTheConnectionInTheMiddleOfAnAnswer) {
    begin("{fault: hang-up, bytes: 20, times: 1}");
    Manager manager(switch_.tcp());
    manager.send(fmapi::make_request(fmapi::Opcode::kIdentify, 1));
    EXPECT_THROW((void)manager.receive(), std::runtime_error);
    Manager next(switch_.tcp());
    EXPECT_EQ(next.get<fmapi::Identify>().serial, 0x5357U);
}

TEST_F(FaultySwitchProcess, ADrippingAnswerIsWhole) {
    begin("{fault: drip, delay: 1ms}");
    Manager manager(switch_.tcp());
    EXPECT_EQ(manager.get<fmapi::Identify>().serial, 0x5357U);
}

TEST_F(FaultySwitchProcess, ASwitchStopsWhileAnAnswerIsLate) {
    begin("{fault: late, delay: 1h}");
    Manager manager(switch_.tcp());
    manager.send(fmapi::make_request(fmapi::Opcode::kIdentify, 1));
    settle();
    switch_.restart();
    EXPECT_TRUE(manager.is_dropped());
}

TEST_F(FaultySwitchProcess, AStuckBindGoesOnWhenTheFaultIsOver) {
    begin("{fault: stuck-operation, operation: bind}");
    Manager manager(switch_.tcp());
    fmapi::BindVppbRequest bind;
    bind.port = kMldPort;
    bind.ld = 0;
    EXPECT_EQ(manager.call<fmapi::BindVppb>(bind).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_TRUE(manager.background().running());
    EXPECT_EQ(manager.background().percent(), 0U);
    active_->end();
    sw().look_again();
    EXPECT_EQ(manager.wait_for_background(), ReturnCode::kSuccess);
    EXPECT_EQ(binding(0, 0), VppbBinding::kBoundLd);
}

TEST_F(FaultySwitchProcess, AStuckBindCanBeAborted) {
    begin("{fault: stuck-operation}");
    Manager manager(switch_.tcp());
    fmapi::BindVppbRequest bind;
    bind.port = kMldPort;
    bind.ld = 0;
    EXPECT_EQ(manager.call<fmapi::BindVppb>(bind).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.call<fmapi::RequestAbortBackgroundOperation>().return_code, ReturnCode::kSuccess);
    EXPECT_EQ(manager.wait_for_background(), ReturnCode::kAborted);
    EXPECT_EQ(binding(0, 0), VppbBinding::kUnbound);
}

TEST_F(FaultySwitchProcess, AFailingBindLeavesTheLdFreeAndNoHostHasSeenIt) {
    begin("{fault: failing-operation, operation: bind, code: retry-required, times: 1}");
    Manager manager(switch_.tcp());
    EXPECT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kRetryRequired);
    EXPECT_TRUE(hosts_->attached().empty());
    EXPECT_EQ(manager.bind(1, 0, kMldPort, 0), ReturnCode::kSuccess);
}

TEST_F(FaultySwitchProcess, AnEraseThatDoesNothingSucceeds) {
    begin("{fault: erase-does-nothing, device: mld0, times: 1}");
    Manager manager(switch_.tcp());
    write_file(switch_.media_file("mld0"), 64, "secret");
    const auto sanitize = fmapi::make_request(fmapi::Opcode::kSanitize, 1);
    for (const std::string& left : {std::string("secret"), std::string(6, '\0')}) {
        EXPECT_EQ(manager.call_ld(kMldPort, 0, sanitize).return_code, ReturnCode::kBackgroundStarted);
        EXPECT_EQ(manager.wait_for_ld(kMldPort, 0), ReturnCode::kSuccess);
        EXPECT_EQ(read_file(switch_.media_file("mld0"), 64, 6), left);
    }
}

TEST_F(FaultySwitchProcess, APowerCycleLosesBindingsAndItsHostsTheirDevices) {
    Manager manager(switch_.tcp());
    ASSERT_EQ(manager.bind(0, 1, kMldPort, 0), ReturnCode::kSuccess);
    sw().power_off(false);
    EXPECT_TRUE(manager.is_dropped());
    Manager too_early(switch_.tcp());
    EXPECT_TRUE(too_early.is_dropped());
    sw().power_on();
    const auto after = connect_when_on();
    EXPECT_EQ(after->vppb(0, 1).binding, VppbBinding::kUnbound);
    EXPECT_EQ(hosts_->detached(), std::vector{fmapi::UnbindOption::kSurpriseHotRemove});
    EXPECT_EQ(after->bind(1, 0, kMldPort, 0), ReturnCode::kSuccess);
}

TEST_F(FaultySwitchProcess, APowerCycleThatKeepsStateKeepsBindings) {
    Manager manager(switch_.tcp());
    ASSERT_EQ(manager.bind(0, 1, kMldPort, 0), ReturnCode::kSuccess);
    sw().power_off(true);
    sw().power_on();
    EXPECT_TRUE(manager.is_dropped());
    EXPECT_EQ(connect_when_on()->vppb(0, 1).binding, VppbBinding::kBoundLd);
    EXPECT_TRUE(hosts_->detached().empty());
}

TEST_F(FaultySwitchProcess, APowerCycleEndsWhatWasUnderWay) {
    begin("{fault: stuck-operation}");
    Manager manager(switch_.tcp());
    fmapi::BindVppbRequest bind;
    bind.port = kMldPort;
    bind.ld = 0;
    EXPECT_EQ(manager.call<fmapi::BindVppb>(bind).return_code, ReturnCode::kBackgroundStarted);
    sw().power_off(false);
    sw().power_on();
    const auto after = connect_when_on();
    EXPECT_FALSE(after->background().running());
    EXPECT_EQ(after->vppb(0, 0).binding, VppbBinding::kUnbound);
}

TEST_F(FaultySwitchProcess, ADeviceThatForgetsHasItsFirstAllocationsAndNoBindings) {
    Manager manager(switch_.tcp());
    ASSERT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    ASSERT_EQ(manager.bind(0, 1, kSldPort, kWholePort), ReturnCode::kSuccess);
    const auto set = fmapi::make_request(
        fmapi::Opcode::kSetLdAllocations, 1,
        fmapi::encode(fmapi::SetLdAllocationsPayload{.first_ld = 2, .allocations = {{1, 0}}}));
    ASSERT_EQ(manager.call_device(kMldPort, set).return_code, ReturnCode::kSuccess);
    sw().lose_device_state(DeviceId("mld0"));
    settle();
    EXPECT_EQ(manager.vppb(0, 0).binding, VppbBinding::kUnbound);
    EXPECT_EQ(manager.vppb(0, 1).binding, VppbBinding::kBoundPort);
    const auto all = Manager::decode_success<fmapi::GetLdAllocationsResponse>(
        manager.call_device(kMldPort, fmapi::make_request(fmapi::Opcode::kGetLdAllocations, 2)));
    ASSERT_EQ(all.allocations.size(), 4U);
    EXPECT_EQ(all.allocations[2].range1, 0U);
}

TEST_F(FaultySwitchProcess, AHostThatIsOutOfReachIsToldAndBackAgain) {
    class Reaching final : public HotplugBackend {
      public:
        boost::asio::awaitable<Result<>> attach(HotplugDevice) override { co_return Result<>(); }
        boost::asio::awaitable<Result<>> detach(HotplugSlot, fmapi::UnbindOption) override {
            co_return Result<>();
        }
        boost::asio::awaitable<void> set_reachable(HotplugDevice device, bool reachable) override {
            const std::lock_guard lock(mutex);
            told.emplace_back(device.serial.value, reachable);
            co_return;
        }
        std::mutex mutex;
        std::vector<std::pair<std::uint64_t, bool>> told;
    };
    const auto reach = std::make_shared<Reaching>();
    TestSwitch other({}, reach);
    Manager manager(other.tcp());
    ASSERT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    ASSERT_EQ(manager.bind(1, 0, kMldPort, 1), ReturnCode::kSuccess);
    Switch& sw = other.thread().get();
    sw.set_port_link(kMldPort, false);
    sw.set_port_link(kMldPort, true);
    sw.set_port_link(1, false);
    sw.set_port_plugged(kMldPort, false);
    (void)other.thread().vppbs();
    const std::lock_guard lock(reach->mutex);
    constexpr std::uint64_t kFirst = 0x4d54000100000001;
    const std::vector<std::pair<std::uint64_t, bool>> expected{
        {kFirst, false},     {kFirst + 1, false}, {kFirst, true},     {kFirst + 1, true},
        {kFirst + 1, false}, {kFirst, false},     {kFirst + 1, false}};
    EXPECT_EQ(reach->told, expected);
}

}  // namespace
}  // namespace memtide::emul::test
