#include "cxl-emul/faults/fault_board.h"

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/faults/read_fault.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes down what is asked of it.
class FakeEquipment final : public Equipment {
  public:
    [[nodiscard]] const Topology& topology() const override { return topology_; }
    void disturb(const SwitchId&, std::shared_ptr<Disturbance>) override {}
    void look_again(const SwitchId& name) override { looks_ += name.value.size() > 0 ? 1 : 0; }
    void set_port_link(const SwitchId& name, std::uint8_t port, bool up) override {
        note(fmt::format("{} {} {}", name.value, port, up ? "up" : "down"));
    }
    void set_port_plugged(const SwitchId&, std::uint8_t port, bool plugged) override {
        note(fmt::format("port {} {}", port, plugged ? "plugged" : "pulled"));
    }
    void power_off(const SwitchId& name, bool keeps) override {
        note(name.value + (keeps ? " off, keeps" : " off"));
    }
    void power_on(const SwitchId& name) override { note(name.value + " on"); }
    void lose_device_state(const DeviceId& device) override { note(device.value + " forgets"); }
    void set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) override {
        note(fmt::format("{} health {} {}", device.value, health.health_status,
                         static_cast<int>(health.media_status)));
    }
    void report_error(const DeviceId& device, fmapi::MldPortEvent severity) override {
        note(fmt::format("{} error {}", device.value, static_cast<int>(severity)));
    }

    std::vector<std::string> notes;
    [[nodiscard]] int looks() const { return looks_; }

  private:
    void note(std::string text) { notes.push_back(std::move(text)); }
    Topology topology_ = parse_topology(test_topology("/tmp"), "topology.yaml").value();
    int looks_ = 0;
};

class Board : public ::testing::Test {
  protected:
    Fault fault(const std::string& text) { return parse_fault(text, "f", &equipment_.topology()).value(); }
    std::uint64_t inject(const std::string& text) { return board_.inject(fault(text)).value(); }
    FaultStatus::State state_of(std::uint64_t id) {
        for (const FaultStatus& one : board_.list())
            if (one.id == id) return one.state;
        ADD_FAILURE() << "there is no fault " << id;
        return FaultStatus::State::kOver;
    }
    // Until every timer has fired.
    void run() {
        context_.restart();
        context_.run();
    }

    boost::asio::io_context context_{1};
    FakeEquipment equipment_;
    FaultBoard board_{context_.get_executor(), equipment_};
};

TEST_F(Board, AFaultWithAnEndBeginsAndEnds) {
    const std::uint64_t id = inject("{fault: link-down, port: 2, for: 1ms}");
    EXPECT_THAT(equipment_.notes, ElementsAre("switch0 2 down"));
    EXPECT_EQ(state_of(id), FaultStatus::State::kActive);
    run();
    EXPECT_THAT(equipment_.notes, ElementsAre("switch0 2 down", "switch0 2 up"));
    EXPECT_EQ(state_of(id), FaultStatus::State::kOver);
}

TEST_F(Board, AFaultWithoutAnEndEndsWhenItIsCleared) {
    const std::uint64_t id = inject("{fault: surprise-removal, device: mld0}");
    run();
    EXPECT_THAT(equipment_.notes, ElementsAre("port 2 pulled"));
    EXPECT_TRUE(board_.clear(id));
    EXPECT_THAT(equipment_.notes, ElementsAre("port 2 pulled", "port 2 plugged"));
    EXPECT_THAT(board_.clear(id).error().message, HasSubstr("there is no fault"));
}

TEST_F(Board, ALinkIsUpWhenNoFaultHoldsItDown) {
    const std::uint64_t port = inject("{fault: link-down, port: 2}");
    const std::uint64_t device = inject("{fault: link-down, device: mld0}");
    inject("{fault: link-down, host: host1}");
    EXPECT_THAT(equipment_.notes, ElementsAre("switch0 2 down", "switch0 1 down"));
    EXPECT_TRUE(board_.clear(port));
    EXPECT_THAT(equipment_.notes, ElementsAre("switch0 2 down", "switch0 1 down"));
    EXPECT_TRUE(board_.clear(device));
    EXPECT_THAT(equipment_.notes, ElementsAre("switch0 2 down", "switch0 1 down", "switch0 2 up"));
}

TEST_F(Board, APowerCycleWithoutATimeIsOffAndOn) {
    inject("{fault: power-cycle, state: kept}");
    run();
    inject("{fault: power-cycle, device: mld0}");
    run();
    EXPECT_THAT(equipment_.notes, ElementsAre("switch0 off, keeps", "switch0 on", "mld0 forgets",
                                              "switch0 2 down", "switch0 2 up"));
}

TEST_F(Board, ADeviceHasTheHealthOfAllItsFaults) {
    const std::uint64_t poison = inject("{fault: poison, device: mld0, offset: 64KiB}");
    const std::uint64_t error = inject("{fault: media-error, port: 2, severity: fatal}");
    EXPECT_TRUE(board_.clear(poison));
    EXPECT_TRUE(board_.clear(error));
    EXPECT_THAT(equipment_.notes, ElementsAre("mld0 health 0 3", "mld0 health 2 3", "mld0 error 2",
                                              "mld0 health 2 0", "mld0 health 0 0"));
}

TEST_F(Board, AScenarioIsPlayedInTheOrderOfItsTimes) {
    const auto scenario = parse_scenario(
        "scenario:\n  - {at: 40ms, fault: link-down, port: 2}\n  - {fault: link-down, port: 3}\n", "s",
        &equipment_.topology());
    const auto ids = board_.play(*scenario, 10);
    ASSERT_TRUE(ids);
    EXPECT_EQ(state_of(ids->at(0)), FaultStatus::State::kWaiting);
    EXPECT_EQ(state_of(ids->at(1)), FaultStatus::State::kActive);
    run();
    EXPECT_THAT(equipment_.notes, ElementsAre("switch0 3 down", "switch0 2 down"));
}

TEST_F(Board, WhatWaitsCanBeCalledOff) {
    const auto id = board_.inject(fault("{fault: link-down, port: 2}"), milliseconds(1));
    EXPECT_TRUE(board_.clear(*id));
    run();
    EXPECT_THAT(equipment_.notes, ElementsAre());
    board_.clear_all();
    EXPECT_EQ(state_of(*id), FaultStatus::State::kOver);
}

TEST_F(Board, AStoppedBoardDoesNothingMore) {
    (void)board_.inject(fault("{fault: link-down, port: 2}"), milliseconds(1));
    board_.stop();
    run();
    EXPECT_THAT(equipment_.notes, ElementsAre());
}

TEST_F(Board, AFaultThatCannotHappenHereIsRefused) {
    Fault wrong;
    wrong.port = 77;
    EXPECT_THAT(board_.inject(wrong).error().message, HasSubstr("has no port 77"));
}

TEST_F(Board, FaultsThatAreOverAreForgottenInTheEnd) {
    for (int i = 0; i < 3000; ++i) EXPECT_TRUE(board_.clear(inject("{fault: link-down, port: 2}")));
    EXPECT_LE(board_.list().size(), 1001U);
    EXPECT_EQ(board_.list().back().id, 3000U);
}

}  // namespace
}  // namespace memtide::emul::test
