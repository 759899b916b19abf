#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <gtest/gtest.h>

#include "tests/integration/background.h"
#include "tests/integration/daemons.h"
#include "tests/integration/eventually.h"
#include "tests/integration/fake_agent.h"
#include "tests/integration/rest_client.h"
#include "tests/integration/temp_folder.h"

namespace memtide::test {

// Short enough for tests that wait for them.
inline constexpr const char* kQuickTiming =
    "switch_poll: 100ms, command_timeout: 1s, connect_timeout: 1s, retry_max: 200ms, shutdown_grace: 2s";

// A manager, a switch and agents, each started by the test that needs it.
class Fabric : public testing::Test {
  protected:
    void TearDown() override {
        background_.stop();
        agents_.clear();
        if (HasFailure() && manager_) std::fputs(manager_->output().c_str(), stderr);
        manager_.reset();
        switch_.reset();
    }

    void run_switch(const SwitchOptions& options = {}) { switch_.emplace(start_switch(folder_, options)); }
    void run_manager(ManagerOptions options = {}) {
        if (options.timing.empty()) options.timing = kQuickTiming;
        manager_.emplace(start_manager(folder_, options));
    }
    FakeAgent& run_agent(const std::string& host, FakeAgent::Behaviour behaviour = FakeAgent::obedient()) {
        agents_.push_back(std::make_unique<FakeAgent>(background_.executor(), manager_url(folder_), host,
                                                      std::move(behaviour)));
        return *agents_.back();
    }
    // Waits until the manager has read its switch.
    void expect_ready() {
        EXPECT_TRUE(eventually(
            [this] { return rest_.get("/readyz").status == 200 && number("/v1/pool", "capacity") > 0; }));
    }
    // Switch, manager, and the agents of both hosts.
    void run_all(const SwitchOptions& switch_options = {}, ManagerOptions manager_options = {}) {
        manager_options.hosts = switch_options.hosts;
        run_switch(switch_options);
        run_manager(std::move(manager_options));
        for (int i = 0; i < switch_options.hosts; ++i) run_agent("host" + std::to_string(i));
        expect_ready();
    }

    std::uint64_t number(const std::string& target, std::string_view member) {
        const boost::json::value answer = rest_.get(target).json;
        const auto* object = answer.if_object();
        const auto* value = object == nullptr ? nullptr : object->if_contains(member);
        return value != nullptr && value->is_number() ? value->to_number<std::uint64_t>() : 0;
    }
    // Composes and fails the test when that is not accepted; the id.
    std::string compose(const std::string& host, const std::string& size = "256MiB") {
        const RestAnswer answer = rest_.compose(host, size);
        EXPECT_EQ(answer.status, 202U) << answer.body;
        return text(answer.json, "id");
    }
    std::string state_of(const std::string& id) {
        return text(rest_.get("/v1/compositions/" + id).json, "state");
    }
    void release(const std::string& id, const std::string& query = "") {
        EXPECT_EQ(rest_.call("DELETE", "/v1/compositions/" + id + query).status, 202U);
    }
    // Waits for the state and fails the test when the composition ends elsewhere; the composition.
    boost::json::value expect_state(const std::string& id, const std::string& state) {
        const boost::json::value composition = rest_.wait(id, state);
        EXPECT_EQ(text(composition, "state"), state) << boost::json::serialize(composition);
        return composition;
    }
    // That nothing is composed and everything is free.
    void expect_all_free() {
        const boost::json::value pool = rest_.get("/v1/pool").json;
        EXPECT_EQ(pool.at("free"), pool.at("capacity"));
        EXPECT_EQ(pool.at("composed"), 0);
    }

    TempFolder folder_;
    Background background_;
    RestClient rest_{manager_url(folder_)};
    std::optional<Daemon> switch_;
    std::optional<Daemon> manager_;
    std::vector<std::unique_ptr<FakeAgent>> agents_;
};

}  // namespace memtide::test
