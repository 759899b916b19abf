// Many switches at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

// A crowd of switches, and how many of them are being read.
class Crowd : public testing::Test {
  protected:
    void gather(int switches) {
        rig_.fabric->add_mld(2, {1});
        rig_.config.timing.switch_poll = std::chrono::hours(1);
        for (int i = 1; i < switches; ++i) {
            const SwitchId id(fmt::format("switch{}", i));
            const auto one = std::make_shared<FakeSwitch>(rig_.io().get_executor());
            one->fault = [this](std::string_view command, FakeSwitch::When when) -> std::optional<Error> {
                if (when != FakeSwitch::When::kBefore) return std::nullopt;
                if (command == "identify_switch") most_ = std::max(most_, ++reading_);
                if (command == "virtual_switches") --reading_;
                return std::nullopt;
            };
            rig_.others[id] = one;
            rig_.config.switches.push_back({id, "fake://" + id.value});
        }
    }
    bool all_read() {
        return rig_.run_until([this] { return rig_.manager->readiness().ready; });
    }

    Rig rig_;
    int reading_ = 0;
    int most_ = 0;
};

TEST_F(Crowd, SoManyAreReadAtATimeAndNoMore) {
    gather(100);
    rig_.config.timing.readers = 8;
    rig_.start();
    ASSERT_TRUE(all_read());
    EXPECT_EQ(most_, 8);
    for (const Switch& one : rig_.manager->switches()) EXPECT_TRUE(one.up) << one.id.value;
}

TEST_F(Crowd, OneAtATimeIsEnough) {
    gather(20);
    rig_.config.timing.readers = 1;
    rig_.start();
    ASSERT_TRUE(all_read());
    EXPECT_EQ(most_, 1);
}

// Those that do not answer wait for each other, not the others for them.
TEST_F(Crowd, SwitchesThatAreDownDoNotKeepTheOthersWaiting) {
    gather(40);
    rig_.config.timing.readers = 2;
    for (int i = 1; i < 30; ++i) rig_.others[SwitchId(fmt::format("switch{}", i))]->down = true;
    rig_.config.timing.switch_poll = Milliseconds(10);
    rig_.start();
    ASSERT_TRUE(all_read());
    rig_.fabric->remove_device(2);
    EXPECT_TRUE(rig_.run_until([&] { return rig_.has_event("device.removed"); }));
}

TEST_F(Crowd, ManagerStopsWhileTheyWaitTheirTurn) {
    gather(100);
    rig_.config.timing.readers = 1;
    rig_.start();
    rig_.stop();
}

}  // namespace
}  // namespace memtide::fm
