#include "cxl-emul/qemu/slots.h"

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/cxl-emul/qemu/fake_qemu.h"

namespace memtide::emul {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using fmapi::UnbindOption;
using testing::HasSubstr;

constexpr std::uint32_t kPort = 0x80000000U | 14U << 16 | 1U << 11;  // bus 14, slot 1
constexpr std::uint32_t kGuestSelected = 0x80001234U;

// A machine with one downstream port: its configuration space as far as Slots looks at it, and its devices.
struct FakeMachine {
    std::atomic<int> button_presses{0};
    std::atomic<bool> indicator_off{false};
    std::atomic<bool> device_add_fails{false};
    std::atomic<bool> pull_works{true};
    int lets_go_after_presses = 0;  // 0: never
    std::set<std::string> devices;
    std::set<std::string> backends;
    std::string injected;
    bool running = true;
    bool touched_while_running = false;
    std::uint32_t address = kGuestSelected;

    void serve(FakeQemu& qemu) {
        qemu.greet();
        for (auto command = qemu.hear(); !command.is_null(); command = qemu.hear()) handle(qemu, command);
    }

    void handle(FakeQemu& qemu, const json::value& command) {
        const std::string name(command.at("execute").as_string());
        const auto* arguments = command.as_object().if_contains("arguments");
        const auto id = arguments && arguments->as_object().contains("id")
                            ? std::string(arguments->at("id").as_string())
                            : std::string();
        if (name == "object-add") {
            backends.insert(id);
        } else if (name == "object-del") {
            backends.erase(id);
        } else if (name == "device_add") {
            if (device_add_fails) return qemu.refuse(command, "no slot");
            devices.insert(id);
        } else if (name == "cxl-inject-poison") {
            injected = json::serialize(*arguments);
        } else if (name == "device_del") {
            if (++button_presses == lets_go_after_presses) indicator_off = true;
        } else if (name == "stop" || name == "cont") {
            running = name == "cont";
        } else if (name == "query-status") {
            return qemu.answer(command, json::object{{"running", running}});
        } else if (name == "qom-list") {
            json::array list;
            for (const auto& device : devices) list.push_back(json::object{{"name", device}});
            return qemu.answer(command, list);
        } else if (name == "query-pci") {
            return qemu.answer(command,
                               json::parse(R"([{"bus": 12, "devices": [{"bus": 12, "slot": 0, "function": 0,
                "qdev_id": "rp0", "pci_bridge": {"devices": [{"bus": 14, "slot": 1, "function": 0, "qdev_id": "dsp0-1",
                "pci_bridge": {}}]}}]}])"));
        } else if (name == "human-monitor-command") {
            return qemu.answer(command,
                               json::value(monitor(std::string(arguments->at("command-line").as_string()))));
        }
        qemu.answer(command, json::object());
    }

    std::string monitor(const std::string& line) {
        touched_while_running = touched_while_running || running;
        unsigned port = 0;
        unsigned value = 0;
        char size = 0;
        if (std::sscanf(line.c_str(), "o /%c %x %x", &size, &port, &value) == 3) {
            if (port == 0xcf8) address = value;
            if (port != 0xcf8 && address == (kPort | 0x58U) && (value & 0x700U) == 0x700U && pull_works)
                devices.clear();
            return "";
        }
        std::sscanf(line.c_str(), "i /%c %x", &size, &port);
        if (port == 0xcf8) return fmt_hex(address);
        const auto reg = (address & 0xfcU) + (port & 3U);
        if ((address & 0xffffff00U) != kPort) return fmt_hex(0xffffffffU);
        if (reg == 0x34) return fmt_hex(0x80);                             // capabilities: first another one
        if (reg == 0x80) return fmt_hex(0x4005U);                          // MSI, next at 40
        if (reg == 0x40) return fmt_hex(0x0010U);                          // PCI Express, the last
        if (reg == 0x58) return fmt_hex(indicator_off ? 0x3f1U : 0x1f1U);  // Slot Control
        return fmt_hex(0);
    }
    static std::string fmt_hex(std::uint32_t value) {
        std::array<char, 40> text{};
        std::snprintf(text.data(), text.size(), "portl[0x0cfc] = 0x%x\r\n", value);
        return text.data();
    }
};

class FakeHelper : public GuestHelper {
  public:
    Result<> slot_use;
    FakeMachine* machine = nullptr;
    int asked = 0;
    std::function<void()> on_release = [] {};
    [[nodiscard]] bool available() const override { return true; }
    asio::awaitable<Result<>> release_slot(unsigned) override {
        ++asked;
        on_release();
        if (slot_use) machine->indicator_off = true;
        co_return slot_use;
    }
    asio::awaitable<Result<>> check_slot_unused(unsigned) override { co_return slot_use; }
};

class SlotsTest : public testing::Test {
  protected:
    void run(const std::function<asio::awaitable<void>(Slots&)>& work) {
        FakeQemu qemu([this](FakeQemu& q) { machine_.serve(q); });
        asio::io_context context(1);
        QmpClient client(context.get_executor(), qemu.take_client());
        Slots slots(context.get_executor(), client, timing_);
        run_to_end(context, connected(client, slots, work));
        client.close();
        context.restart();
        context.run();
    }
    static asio::awaitable<void> connected(QmpClient& client, Slots& slots,
                                           const std::function<asio::awaitable<void>(Slots&)>& work) {
        EXPECT_TRUE(co_await client.handshake());
        co_await work(slots);
    }
    static HotplugDevice device() {
        HotplugDevice out;
        out.serial = {0x4d54000100000002};
        out.media_file = "/m";
        out.offset = mebibytes(256);
        out.size = mebibytes(256);
        return out;
    }

    const PortPlace place_{"dsp0-1", 4};
    HotplugTiming timing_{std::chrono::milliseconds(60), std::chrono::milliseconds(2)};
    FakeMachine machine_;
};

TEST_F(SlotsTest, SurpriseTakesTheDeviceOutWithoutAskingTheGuest) {
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_TRUE(co_await slots.detach(place_, UnbindOption::kSurpriseHotRemove, nullptr));
    });
    EXPECT_TRUE(machine_.devices.empty());
    EXPECT_EQ(machine_.button_presses, 0);
}

TEST_F(SlotsTest, CommandAboutADeviceNamesItsPath) {
    run([this](Slots& slots) -> asio::awaitable<void> {
        const auto empty = co_await slots.command(place_, "cxl-inject-poison", {});
        EXPECT_EQ(empty.error().code, ErrorCode::kNotFound);
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        json::object arguments;
        arguments["start"] = 4096;
        EXPECT_TRUE(co_await slots.command(place_, "cxl-inject-poison", std::move(arguments)));
    });
    EXPECT_EQ(machine_.injected, R"({"start":4096,"path":"/machine/peripheral/ld0"})");
}

TEST_F(SlotsTest, ConfigurationPortsAreUsedOnlyWhileTheMachineIsStoppedAndAreRestored) {
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_TRUE(co_await slots.detach(place_, UnbindOption::kSurpriseHotRemove, nullptr));
    });
    EXPECT_FALSE(machine_.touched_while_running);
    EXPECT_TRUE(machine_.running);
    EXPECT_EQ(machine_.address, kGuestSelected);
}

TEST_F(SlotsTest, MachineThatWasStoppedStaysStopped) {
    machine_.running = false;
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_TRUE(co_await slots.detach(place_, UnbindOption::kSurpriseHotRemove, nullptr));
    });
    EXPECT_FALSE(machine_.running);
}

TEST_F(SlotsTest, ManagedPressesTheButtonAndWaitsForTheGuest) {
    machine_.lets_go_after_presses = 1;
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_TRUE(co_await slots.detach(place_, UnbindOption::kManagedHotRemove, nullptr));
    });
    EXPECT_TRUE(machine_.devices.empty());
    EXPECT_EQ(machine_.button_presses, 1);
}

TEST_F(SlotsTest, GuestThatNeverLetsGoKeepsItsDeviceAndThatIsSaid) {
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        auto detached = co_await slots.detach(place_, UnbindOption::kManagedHotRemove, nullptr);
        EXPECT_EQ(detached.error().code, ErrorCode::kTimeout);
        EXPECT_THAT(detached.error().message, HasSubstr("did not let the device in slot 4 go"));
    });
    EXPECT_EQ(machine_.devices.size(), 1U);
}

TEST_F(SlotsTest, GuestThatLetsGoAfterWeGaveUpIsDoneAtTheNextTry) {
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_FALSE(co_await slots.detach(place_, UnbindOption::kManagedHotRemove, nullptr));
        machine_.indicator_off = true;
        EXPECT_TRUE(co_await slots.detach(place_, UnbindOption::kManagedHotRemove, nullptr));
    });
    EXPECT_TRUE(machine_.devices.empty());
    EXPECT_EQ(machine_.button_presses, 1);
}

TEST_F(SlotsTest, ManagedDoesNotPressTheButtonWhileTheGuestUsesTheMemory) {
    auto helper = std::make_shared<FakeHelper>();
    helper->slot_use = fail(ErrorCode::kConflict, "region0 of mem0 is in use");
    run([this, helper](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        auto detached = co_await slots.detach(place_, UnbindOption::kManagedHotRemove, helper);
        EXPECT_EQ(detached.error().message, "region0 of mem0 is in use");
    });
    EXPECT_EQ(machine_.button_presses, 0);
    EXPECT_EQ(machine_.devices.size(), 1U);
}

TEST_F(SlotsTest, WaitAsksTheHelperUntilTheGuestIsDoneWithTheMemory) {
    auto helper = std::make_shared<FakeHelper>();
    helper->machine = &machine_;
    run([this, helper](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_TRUE(co_await slots.detach(place_, UnbindOption::kWaitForLinkDown, helper));
    });
    EXPECT_TRUE(machine_.devices.empty());
    EXPECT_EQ(machine_.button_presses, 0);
}

TEST_F(SlotsTest, WaitGivesUpWithWhatHoldsTheMemory) {
    auto helper = std::make_shared<FakeHelper>();
    helper->slot_use = fail(ErrorCode::kConflict, "region0 of mem0 is in use");
    run([this, helper](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        auto detached = co_await slots.detach(place_, UnbindOption::kWaitForLinkDown, helper);
        EXPECT_EQ(detached.error().code, ErrorCode::kConflict);
    });
    EXPECT_GT(helper->asked, 1);
    EXPECT_EQ(machine_.devices.size(), 1U);
}

TEST_F(SlotsTest, WhatAWaitIsForCanBeSaidMeanwhile) {
    auto helper = std::make_shared<FakeHelper>();
    helper->slot_use = fail(ErrorCode::kConflict, "region0 of mem0 is in use");
    std::string meanwhile;
    run([&, this](Slots& slots) -> asio::awaitable<void> {
        helper->on_release = [&] { meanwhile = slots.waits_for(place_); };
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_EQ(slots.waits_for(place_), "");
        EXPECT_FALSE(co_await slots.detach(place_, UnbindOption::kWaitForLinkDown, helper));
        EXPECT_EQ(slots.waits_for(place_), "");
    });
    EXPECT_EQ(meanwhile, "region0 of mem0 is in use");
}

TEST_F(SlotsTest, WaitPressesTheButtonWhenTheHelperCannotHelp) {
    auto helper = std::make_shared<FakeHelper>();
    helper->slot_use = fail(ErrorCode::kUnavailable, "the guest's helper restarted");
    machine_.lets_go_after_presses = 1;
    run([this, helper](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_TRUE(co_await slots.detach(place_, UnbindOption::kWaitForLinkDown, helper));
    });
    EXPECT_EQ(machine_.button_presses, 1);
}

TEST_F(SlotsTest, QemuThatKeepsTheDeviceIsAnErrorAndNotASuccess) {
    machine_.pull_works = false;
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        auto detached = co_await slots.detach(place_, UnbindOption::kSurpriseHotRemove, nullptr);
        EXPECT_EQ(detached.error().code, ErrorCode::kInternal);
    });
}

TEST_F(SlotsTest, RefusedDeviceLeavesNoMemoryBehind) {
    machine_.device_add_fails = true;
    run([this](Slots& slots) -> asio::awaitable<void> {
        auto attached = co_await slots.attach(place_, device());
        EXPECT_EQ(attached.error().message, "QMP device_add: no slot");
        machine_.device_add_fails = false;
        EXPECT_TRUE(co_await slots.attach(place_, device()));
    });
    EXPECT_EQ(machine_.backends.size(), 1U);
}

TEST_F(SlotsTest, OccupiedSlotIsRefused) {
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.attach(place_, device()));
        EXPECT_EQ((co_await slots.attach(place_, device())).error().code, ErrorCode::kConflict);
    });
    EXPECT_EQ(machine_.devices.size(), 1U);
}

TEST_F(SlotsTest, EmptySlotIsDetachedAlready) {
    run([this](Slots& slots) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await slots.detach(place_, UnbindOption::kManagedHotRemove, nullptr));
    });
}

}  // namespace
}  // namespace memtide::emul
