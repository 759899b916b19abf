// Each example in config/scenarios against the real manager and the real switch: what comes of it in the end.
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "common/base/bytes.h"
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

// How many times faster than the files say.
constexpr int kSpeed = 20;

class Scenarios : public Fabric {
  protected:
    void TearDown() override {
        if (HasFailure()) std::fputs(faults().c_str(), stderr);
        Fabric::TearDown();
    }

    // A switch that can be told to fail, the manager and the agents of both hosts.
    void run_with_faults(const std::string& gone_after = "30s", const std::string& more_timing = "") {
        const std::string file = folder_.file("topology.yaml");
        write_file(file, topology_yaml(folder_, {}));
        switch_.emplace(std::vector<std::string>{MEMTIDE_CXL_EMUL, "switch", file, "--control", control()},
                        folder_.file("switch.out"), "listening on");
        run_manager({.timing = fmt::format("switch_poll: 50ms, command_timeout: 500ms, connect_timeout: 1s, "
                                           "retry_min: 10ms, retry_max: 100ms, health_poll: 50ms, "
                                           "quarantine_retry: 100ms, shutdown_grace: 2s, gone_after: {}{}",
                                           gone_after, more_timing),
                     // A switch that flaps is given something again when it has been quiet for a moment.
                     .more = "flapping: {window: 5s, hold: 500ms, hold_max: 1s}\n"});
        run_agent("host0");
        run_agent("host1");
        expect_ready();
    }
    [[nodiscard]] std::string control() const { return "unix:" + folder_.file("control.sock"); }

    // With the command of the program, as a person would.
    void play(const std::string& name) {
        process::Command command;
        command.argv = {MEMTIDE_CXL_EMUL, "fault",
                        "play",           "--control",
                        control(),        MEMTIDE_CONFIG "/scenarios/" + name + ".yaml",
                        "--speed",        std::to_string(kSpeed)};
        command.standard_output = process::Stream::null();
        auto child = process::Child::spawn(command);
        ASSERT_TRUE(child) << child.error().message;
        const auto exit = child->wait_for(std::chrono::seconds(30));
        ASSERT_TRUE(exit && exit->succeeded());
    }
    std::uint64_t waiting() {
        const boost::json::value now = control_.get("/v1/faults").json;
        return now.at("waiting").to_number<std::uint64_t>();
    }
    std::string faults() { return control_.get("/v1/faults").body; }
    // Until every fault of it has begun and is over.
    void expect_over() {
        EXPECT_TRUE(eventually([this] {
            const boost::json::value now = control_.get("/v1/faults").json;
            return now.is_object() && now.at("waiting") == 0 && now.at("active") == 0;
        })) << faults();
    }
    std::uint64_t hits(const std::string& kind) {
        std::uint64_t sum = 0;
        const boost::json::value now = control_.get("/v1/faults").json;
        for (const boost::json::value& one : now.at("faults").as_array())
            if (one.at("kind").as_string() == kind) sum += one.at("hits").to_number<std::uint64_t>();
        return sum;
    }
    void clear_faults() { EXPECT_EQ(control_.call("DELETE", "/v1/faults").status, 204U); }
    void clear_faults(const std::string& kind) {
        const boost::json::value now = control_.get("/v1/faults").json;
        for (const boost::json::value& one : now.at("faults").as_array())
            if (one.at("kind").as_string() == kind) {
                const auto id = one.at("id").to_number<std::uint64_t>();
                EXPECT_EQ(control_.call("DELETE", fmt::format("/v1/faults/{}", id)).status, 204U);
            }
    }

    bool is_switch_up() {
        const boost::json::value item = rest_.get("/v1/switches/switch0").json;
        return item.is_object() && item.at("up") == true;
    }
    bool was_told(const std::string& what) {
        return eventually([&] { return manager_->output().find(what) != std::string::npos; });
    }
    std::string reason_of(const boost::json::value& composition) {
        return text(composition.at("reason"), "code");
    }
    // A switch that just failed is refused for a moment (host-not-reachable).
    std::string compose_soon(const std::string& host) {
        std::string id;
        EXPECT_TRUE(eventually([&] {
            const RestAnswer answer = rest_.compose(host, "256MiB");
            if (answer.status == 202) id = text(answer.json, "id");
            return !id.empty();
        }));
        return id;
    }
    // What every scenario has to leave behind: a fabric that works and has lost nothing.
    void expect_sound_again() {
        EXPECT_TRUE(eventually([this] { return is_switch_up(); }));
        const std::string id = compose_soon("host1");
        expect_state(id, "Online");
        release(id);
        expect_state(id, "Released");
    }
    void expect_released_and_all_free(const std::string& id) {
        release(id);
        expect_state(id, "Released");
        EXPECT_TRUE(
            eventually([this] { return number("/v1/pool", "free") == number("/v1/pool", "capacity"); }));
        expect_all_free();
    }

    RestClient control_{control()};
};

TEST_F(Scenarios, LinksThatComeBackCostNobodyAnything) {
    run_with_faults();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    play("links");
    expect_over();
    expect_sound_again();
    EXPECT_EQ(state_of(id), "Online");
    expect_released_and_all_free(id);
}

TEST_F(Scenarios, ADeviceThatIsPulledFailsItsCompositionAndServesAgainWhenItIsBack) {
    run_with_faults("50ms");
    const std::string id = compose("host0");
    expect_state(id, "Online");
    play("surprise-removal");
    EXPECT_EQ(reason_of(expect_state(id, "Failed")), "device-vanished");
    clear_faults();
    EXPECT_TRUE(eventually([this] { return number("/v1/pool", "free") > 0; }));
    expect_sound_again();
}

TEST_F(Scenarios, ASwitchThatRemembersKeepsItsCompositionsOverAPowerCycle) {
    run_with_faults();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    play("power-cycle-kept");
    EXPECT_TRUE(was_told("switch.down"));
    expect_over();
    expect_sound_again();
    EXPECT_EQ(state_of(id), "Online");
    expect_released_and_all_free(id);
}

TEST_F(Scenarios, ASwitchThatForgetsFailsItsCompositions) {
    run_with_faults("50ms");
    const std::string id = compose("host0");
    expect_state(id, "Online");
    play("power-cycle-lost");
    EXPECT_EQ(reason_of(expect_state(id, "Failed")), "device-vanished");
    expect_over();
    expect_sound_again();
}

TEST_F(Scenarios, ADeviceThatForgetsFailsItsCompositions) {
    run_with_faults("50ms");
    const std::string id = compose("host0");
    expect_state(id, "Online");
    play("power-cycle-device");
    EXPECT_EQ(reason_of(expect_state(id, "Failed")), "device-vanished");
    expect_over();
    EXPECT_TRUE(eventually([this] { return number("/v1/pool", "free") > 0; }));
    expect_sound_again();
}

TEST_F(Scenarios, SlowAndStuckOperationsAreWaitedFor) {
    run_with_faults();
    play("slow-operations");
    const std::string first = compose_soon("host0");
    EXPECT_TRUE(eventually([this] { return hits("stuck-operation") == 1; }));
    EXPECT_EQ(state_of(first), "Binding");
    const std::string second = compose_soon("host1");
    clear_faults("stuck-operation");
    expect_state(first, "Online");
    expect_state(second, "Online");
    expect_over();
    EXPECT_EQ(hits("slow-operation"), 4U);
    release(first);
    expect_state(first, "Released");
    expect_released_and_all_free(second);
}

TEST_F(Scenarios, OperationsThatFailAreBegunAgain) {
    run_with_faults();
    play("failing-operations");
    const std::string id = compose_soon("host0");
    expect_state(id, "Online");
    expect_released_and_all_free(id);
    EXPECT_EQ(hits("failing-operation"), 4U);
}

TEST_F(Scenarios, CommandsThatAreRefusedAreSentAgain) {
    run_with_faults();
    play("error-codes");
    const std::string id = compose_soon("host0");
    expect_state(id, "Online");
    expect_released_and_all_free(id);
    expect_over();
    EXPECT_EQ(hits("error"), 17U);
    expect_sound_again();
}

TEST_F(Scenarios, ASilentSwitchDelaysAndNothingIsDoneTwice) {
    run_with_faults();
    play("silence");
    const std::string id = compose_soon("host0");
    expect_state(id, "Online");
    EXPECT_EQ(number("/v1/pool", "composed"), mebibytes(256).value);
    expect_released_and_all_free(id);
    expect_over();
    EXPECT_EQ(hits("silence"), 5U);
    EXPECT_EQ(hits("late"), 2U);
    expect_sound_again();
}

TEST_F(Scenarios, SpoiltPacketsAreNeverBelievedAndTheFabricRecovers) {
    run_with_faults();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    play("spoilt-packets");
    expect_over();
    for (const char* const kind : {"truncate", "hang-up", "reorder", "duplicate", "wrong-tag", "drip"})
        EXPECT_EQ(hits(kind), 2U) << kind;
    EXPECT_EQ(hits("corrupt"), 3U);
    expect_sound_again();
    EXPECT_EQ(state_of(id), "Online");
    expect_released_and_all_free(id);
}

TEST_F(Scenarios, WhatADeviceSaysOfItsHealthIsAnEventAndItGetsNothingNew) {
    run_with_faults();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    play("sick-device");
    EXPECT_TRUE(was_told("device-error"));
    EXPECT_TRUE(was_told("has lost all its data"));
    EXPECT_TRUE(was_told("has to be replaced"));
    EXPECT_GE(rest_.compose("host1", "256MiB").status, 400U);
    clear_faults();
    EXPECT_TRUE(eventually([this] { return number("/v1/pool", "free") > 0; }));
    EXPECT_EQ(state_of(id), "Online");
    expect_sound_again();
    expect_released_and_all_free(id);
}

TEST_F(Scenarios, ADeviceThatLiesIsNotBelievedForLong) {
    run_with_faults();
    play("lying-device");
    // It passes for another device, and is read as one.
    const auto is_there = [this](const char* device) {
        return rest_.get(std::string("/v1/devices/") + device).status == 200;
    };
    EXPECT_TRUE(eventually([&] { return is_there("mld-4d5400ff00000000"); })) << faults();
    EXPECT_EQ(waiting(), 0U);
    clear_faults();
    EXPECT_TRUE(eventually([&] { return is_there("mld-4d54000100000000"); }));
    EXPECT_TRUE(eventually([this] { return number("/v1/pool", "capacity") == mebibytes(1024).value; }));
    expect_sound_again();
}

TEST_F(Scenarios, AStormPassesAndEverythingIsFreeAgain) {
    run_with_faults();
    play("storm");
    for (int round = 0; round < 3; ++round) {
        const RestAnswer answer = rest_.compose("host0", "256MiB");
        if (answer.status != 202) continue;
        const std::string id = text(answer.json, "id");
        (void)rest_.wait(id, "Online", std::chrono::seconds(5));
        (void)rest_.call("DELETE", "/v1/compositions/" + id);
    }
    expect_over();
    EXPECT_TRUE(eventually([this] { return is_switch_up(); }));
    EXPECT_TRUE(eventually([this] { return number("/v1/pool", "free") == number("/v1/pool", "capacity"); }));
    expect_sound_again();
    expect_all_free();
}

}  // namespace
}  // namespace memtide::test
