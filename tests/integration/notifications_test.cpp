// What a switch tells of its own accord is acted on long before the next poll.
#include "cxl-emul/switch/switch_thread.h"
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class SwitchNotifications : public Fabric {
  protected:
    // A manager that looks by itself once an hour, and a switch within reach of the test.
    SwitchNotifications() {
        const auto topology = emul::parse_topology(topology_yaml(folder_, {}), "topology.yaml");
        if (!topology) throw std::runtime_error(topology.error().message);
        auto running = emul::SwitchThread::start(*topology, topology->switches[0]);
        if (!running) throw std::runtime_error(running.error().message);
        emulated_.emplace(*std::move(running));
        ManagerOptions options;
        options.timing =
            "switch_poll: 1h, gone_after: 50ms, command_timeout: 1s, connect_timeout: 1s, shutdown_grace: 2s";
        run_manager(options);
        run_agent("host0");
        expect_ready();
    }
    bool is_told(const std::string& what) {
        return eventually([&] { return manager_->output().find(what) != std::string::npos; });
    }

    std::optional<emul::SwitchThread> emulated_;
};

TEST_F(SwitchNotifications, UnpluggedDeviceIsNoticedAndItsReturnToo) {
    emulated_->get().set_device_plugged(DeviceId("mld0"), false);
    EXPECT_TRUE(is_told("device.removed"));
    EXPECT_TRUE(is_told("slot of port 2 is empty"));
    emulated_->get().set_device_plugged(DeviceId("mld0"), true);
    EXPECT_TRUE(eventually([this] { return number("/v1/pool", "free") > 0; }));
    expect_state(compose("host0"), "Online");
}

TEST_F(SwitchNotifications, DeviceUnpluggedUnderAHostFailsItsComposition) {
    const std::string id = compose("host0");
    expect_state(id, "Online");
    emulated_->get().set_device_plugged(DeviceId("mld0"), false);
    const boost::json::value failed = expect_state(id, "Failed");
    EXPECT_EQ(text(failed.at("reason"), "code"), "device-vanished");
}

TEST_F(SwitchNotifications, ErrorOfADeviceIsAnEvent) {
    emulated_->get().report_ld_error(DeviceId("mld0"), fmapi::MldPortEvent::kFatal);
    EXPECT_TRUE(is_told("device-error"));
}

}  // namespace
}  // namespace memtide::test
