// The manager killed with -9 at every stage of a composition, and started again: it finishes the job, once.
#include <map>
#include <random>

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class Restart : public Fabric {
  protected:
    void kill_and_restart() {
        manager_->kill();
        run_manager();
    }
    // How often each state was entered, by the events.
    std::map<std::string, int> entered(const std::string& id) {
        std::map<std::string, int> result;
        std::string pending;
        rest_.stream("/v1/events?after=0", {}, [&](std::string_view chunk) {
            pending += chunk;
            // Until the whole event is there.
            const auto released = pending.find("\"Released\"");
            const bool complete =
                released != std::string::npos && pending.find("\n\n", released) != std::string::npos;
            return pending.find("\n: heartbeat") == std::string::npos && !complete;
        });
        for (std::size_t at = 0; (at = pending.find("data: ", at)) != std::string::npos; ++at) {
            const auto event = boost::json::parse(pending.substr(at + 6, pending.find('\n', at) - at - 6));
            if (text(event, "type") == "composition.state" && text(event, "composition") == id)
                ++result[text(event, "state")];
        }
        return result;
    }
};

// Slow enough to be caught in each of its stages.
const SwitchOptions kSlow{.bind_time = std::chrono::milliseconds(150),
                          .unbind_time = std::chrono::milliseconds(150),
                          .sanitize_time = std::chrono::milliseconds(150)};

class KilledIn : public Restart, public testing::WithParamInterface<const char*> {};

TEST_P(KilledIn, TheJobIsFinishedOnce) {
    run_all(kSlow);
    const std::string stage = GetParam();
    const bool on_the_way_back = stage == "Draining" || stage == "Unbinding" || stage == "Erasing";
    // Stages that pass by themselves are held by an agent that does not do its part.
    if (stage == "Onlining") agents_[0]->behave(FakeAgent::idle());
    const std::string id = compose("host0");
    if (on_the_way_back) {
        expect_state(id, "Online");
        if (stage == "Draining") agents_[0]->behave(FakeAgent::held_by(1, "x"));
        release(id);
    }
    EXPECT_TRUE(eventually([&] { return state_of(id) == stage; })) << state_of(id);
    kill_and_restart();
    agents_[0]->behave(FakeAgent::obedient());
    if (!on_the_way_back) {
        expect_state(id, "Online");
        release(id);
    }
    expect_state(id, "Released");
    expect_all_free();
    EXPECT_EQ(rest_.get("/v1/compositions").json.at("items").as_array().size(), 1U);
    for (const auto& [state, times] : entered(id)) EXPECT_EQ(times, 1) << state;
    // The memory is there for the next one.
    expect_state(compose("host1"), "Online");
}

INSTANTIATE_TEST_SUITE_P(Stages, KilledIn,
                         testing::Values("Pending", "Binding", "Onlining", "Online", "Draining", "Unbinding",
                                         "Erasing"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Restart, KilledAgainAndAgainAtAnyMomentTheJobIsStillFinishedOnce) {
    run_all(kSlow);
    std::mt19937 random(4711);  // always the same moments, as far as a busy machine allows
    const auto kill_now_and_then = [&](const std::string& id, const std::string& goal) {
        for (int i = 0; i < 8; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 120));
            kill_and_restart();
        }
        expect_state(id, goal);
    };
    const std::string id = compose("host0");
    kill_now_and_then(id, "Online");
    release(id);
    kill_now_and_then(id, "Released");
    expect_all_free();
    for (const auto& [state, times] : entered(id)) EXPECT_EQ(times, 1) << state;
}

TEST_F(Restart, WhatWasAcknowledgedIsThereAfterAKillAtOnce) {
    run_all();
    for (int i = 0; i < 5; ++i) {
        const std::string id = compose("host0");
        manager_->kill();
        run_manager();
        EXPECT_EQ(rest_.get("/v1/compositions/" + id).status, 200U);
        expect_state(id, "Online");
        release(id);
        manager_->kill();
        run_manager();
        expect_state(id, "Released");
    }
    expect_all_free();
}

TEST_F(Restart, SigtermEndsLongPollsAndExitsWithZero) {
    run_all();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    std::thread stopper([this] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        const process::Exit exit = manager_->terminate();
        EXPECT_TRUE(exit.succeeded()) << exit.describe();
    });
    const RestAnswer answer = rest_.get("/v1/compositions/" + id + "?wait=Released&timeout=60s");
    stopper.join();
    EXPECT_NE(answer.status, 200U) << answer.body;
    run_manager();
    EXPECT_EQ(state_of(id), "Online");
}

}  // namespace
}  // namespace memtide::test
