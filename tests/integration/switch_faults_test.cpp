// Switches that are down, go away, are late, or lie: compositions wait, and are finished once the switch is
// well.
#include <fmt/format.h>

#include "fabric-manager/fmapi/client.h"
#include "tests/integration/fabric_fixture.h"
#include "tests/integration/faulty_switch.h"

namespace memtide::test {
namespace {

class SwitchFaults : public Fabric {
  protected:
    bool switch_is_up() {
        const boost::json::value item = rest_.get("/v1/switches/switch0").json;
        return item.is_object() && item.at("up") == true;
    }
    // Binds LD `ld` of the first device to vPPB 0 of the VCS, past the manager.
    void bind_behind_the_managers_back(std::uint8_t vcs, std::uint16_t ld, std::uint8_t port = 2) {
        auto client = fm::make_fm_api_client(background_.executor(), {.address = switch_address(folder_)});
        ASSERT_TRUE(client);
        fmapi::BindVppbRequest request;
        request.vcs = vcs;
        request.vppb = 0;
        request.port = port;
        request.ld = ld;
        const auto bound = background_.run((*client)->bind(request));
        ASSERT_TRUE(bound) << bound.error().message;
        const auto over = background_.run(
            fm::wait_for_background(**client, fm::Target::the_switch(), fmapi::Opcode::kBindVppb,
                                    std::chrono::steady_clock::now() + std::chrono::seconds(30)));
        EXPECT_TRUE(over) << over.error().message;
        background_.call([&] {
            client->reset();
            return true;
        });
    }
    void unbind_behind_the_managers_back(std::uint8_t vcs, std::uint8_t vppb) {
        auto client = fm::make_fm_api_client(background_.executor(), {.address = switch_address(folder_)});
        ASSERT_TRUE(client);
        fmapi::UnbindVppbRequest request;
        request.vcs = vcs;
        request.vppb = vppb;
        request.option = fmapi::UnbindOption::kSurpriseHotRemove;
        const auto unbound = background_.run((*client)->unbind(request));
        EXPECT_TRUE(unbound) << unbound.error().message;
        background_.call([&] {
            client->reset();
            return true;
        });
    }
};

TEST_F(SwitchFaults, ASwitchThatIsDownAtStartIsTakenInWhenItComes) {
    run_manager();
    run_agent("host0");
    EXPECT_TRUE(
        eventually([this] { return !text(rest_.get("/v1/switches/switch0").json, "error").empty(); }));
    EXPECT_EQ(rest_.get("/healthz").status, 200U);
    const RestAnswer refused = rest_.compose("host0", "256MiB");
    EXPECT_GE(refused.status, 400U) << refused.body;
    EXPECT_FALSE(refused.code().empty());
    run_switch();
    EXPECT_TRUE(eventually([this] { return switch_is_up(); }));
    EXPECT_TRUE(eventually([this] { return number("/v1/pool", "free") > 0; }));
    expect_state(compose("host0"), "Online");
}

TEST_F(SwitchFaults, ASwitchThatDiesMidBindFinishesTheBindAfterItsReturn) {
    run_all({.bind_time = std::chrono::milliseconds(700)});
    const std::string id = compose("host0");
    EXPECT_TRUE(eventually([&] { return state_of(id) == "Binding"; }));
    switch_->kill();
    EXPECT_TRUE(eventually([this] { return !switch_is_up(); }));
    EXPECT_TRUE(eventually([&] {
        const auto c = rest_.get("/v1/compositions/" + id).json;
        return text(c, "waiting_for").find("switch0") != std::string::npos;
    }));
    run_switch();
    const boost::json::value online = expect_state(id, "Online");
    release(id);
    expect_state(id, "Released");
    expect_all_free();
}

TEST_F(SwitchFaults, MemoryUnboundPastTheManagerFailsItsCompositionAndSaysWhy) {
    run_all();
    const std::string id = compose("host0");
    const boost::json::value online = expect_state(id, "Online");
    unbind_behind_the_managers_back(only_part(online).at("vcs").to_number<std::uint8_t>(),
                                    only_part(online).at("vppb").to_number<std::uint8_t>());
    const boost::json::value failed = expect_state(id, "Failed");
    EXPECT_EQ(text(failed.at("reason"), "code"), "device-vanished");
    EXPECT_TRUE(eventually([this] { return number("/v1/pool", "composed") == 0; }));
    // What the host may still know of it is erased before the next one gets it.
    const boost::json::value next = expect_state(compose("host1"), "Online");
    EXPECT_NE(boost::json::serialize(next.at("steps")).find("bind"), std::string::npos);
}

TEST_F(SwitchFaults, WhatIsFoundBoundIsAdoptedAndCanBeReleased) {
    run_switch();
    bind_behind_the_managers_back(1, 2);
    run_manager();
    run_agent("host1");
    expect_ready();
    boost::json::value adopted;
    EXPECT_TRUE(eventually([&] {
        const boost::json::value list = rest_.get("/v1/compositions").json;
        if (list.at("items").as_array().empty()) return false;
        adopted = list.at("items").at(0);
        return true;
    }));
    EXPECT_EQ(text(adopted, "host"), "host1");
    EXPECT_EQ(only_part(adopted).at("ld"), 2);
    EXPECT_EQ(adopted.at("adopted"), true);
    const std::string id = text(adopted, "id");
    expect_state(id, "Online");
    release(id);
    expect_state(id, "Released");
    expect_all_free();
}

// One fault for the first commands of each kind that change something, another for everything.
struct FaultCase {
    const char* name;
    Fault fault;
};
// Without it GoogleTest prints the bytes, an address among them, and CTest sees another name at each build.
void PrintTo(const FaultCase& one, std::ostream* out) { *out << one.name; }

class LyingSwitch : public SwitchFaults, public testing::WithParamInterface<FaultCase> {
  protected:
    void TearDown() override {
        background_.stop();
        lying_.reset();
        SwitchFaults::TearDown();
    }
    void run_lying_switch() {
        lying_ = std::make_unique<FaultySwitch>(background_, folder_);
        run_manager();
        run_agent("host0");
        expect_ready();
    }
    std::unique_ptr<FaultySwitch> lying_;
};

TEST_P(LyingSwitch, ABindWhoseAnswersAreSpoiltIsDoneOnce) {
    run_lying_switch();
    lying_->set_fault(GetParam().fault, fmapi::Opcode::kBindVppb, 1);
    const std::string id = compose("host0");
    expect_state(id, "Online");
    EXPECT_EQ(lying_->spoilt(), 1);
    EXPECT_EQ(lying_->bound().size(), 1U);
    lying_->set_fault(GetParam().fault, fmapi::Opcode::kUnbindVppb, 1);
    release(id);
    expect_state(id, "Released");
    EXPECT_EQ(lying_->bound().size(), 0U);
    expect_all_free();
}

TEST_P(LyingSwitch, ATunnelWhoseAnswersAreSpoiltDelaysTheEraseOnly) {
    run_lying_switch();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    lying_->set_fault(GetParam().fault, fmapi::Opcode::kTunnelManagementCommand, 2);
    release(id);
    expect_state(id, "Released");
    expect_all_free();
}

TEST_P(LyingSwitch, ASwitchThatOnlySpoilsIsDownAndRestIsServedMeanwhile) {
    run_lying_switch();
    lying_->set_fault(GetParam().fault);
    EXPECT_TRUE(eventually([this] { return !switch_is_up(); }));
    EXPECT_FALSE(text(rest_.get("/v1/switches/switch0").json, "error").empty());
    EXPECT_EQ(rest_.get("/healthz").status, 200U);
    EXPECT_GE(rest_.compose("host0", "256MiB").status, 202U);
    lying_->set_fault(Fault::kNone);
    EXPECT_TRUE(eventually([this] { return switch_is_up(); }));
    expect_state(compose("host0"), "Online");
}

INSTANTIATE_TEST_SUITE_P(Faults, LyingSwitch,
                         testing::Values(FaultCase{"Silent", Fault::kSilent}, FaultCase{"Late", Fault::kLate},
                                         FaultCase{"Garbage", Fault::kGarbage},
                                         FaultCase{"AnotherTag", Fault::kWrongTag},
                                         FaultCase{"HangUp", Fault::kHangUp}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace memtide::test
