// Scenarios that need hosts which look at their memory: emulated ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/integration/daemons.h"
#include "tests/integration/eventually.h"
#include "tests/integration/rest_client.h"

namespace memtide::test {
namespace {

class FleetScenarios : public testing::Test {
  protected:
    // Two hosts behind a switch with one device.
    void run_with(const std::vector<std::string>& more, int lds = 1, const std::string& manager = {}) {
        std::vector<std::string> options{fmt::format("--lds={}", lds)};
        options.insert(options.end(), more.begin(), more.end());
        fleet_.emplace(start_fleet(folder_, {.hosts = 2, .switches = 1, .devices = 1, .options = options}));
        manager_.emplace(start_fleet_manager(folder_, manager));
        EXPECT_TRUE(eventually([this] { return number_in_pool("free") > 0; }));
        // Of a host that had never reported when it got memory, nothing can be proven later.
        for (const char* host : {"host0", "host1"})
            EXPECT_TRUE(eventually([&] { return has_reported(host); })) << host;
    }
    bool has_reported(const std::string& host) {
        const boost::json::value seen = rest_.get("/v1/hosts/" + host).json;
        return seen.is_object() && !seen.at("agent").at("last_report").is_null();
    }
    std::uint64_t number_in_pool(std::string_view member) {
        const boost::json::value pool = rest_.get("/v1/pool").json;
        return pool.is_object() ? pool.at(member).to_number<std::uint64_t>() : 0;
    }
    std::string compose(const std::string& host) {
        const RestAnswer answer = rest_.compose(host, "256MiB");
        EXPECT_EQ(answer.status, 202U) << answer.body;
        return text(answer.json, "id");
    }
    void expect_state(const std::string& id, const std::string& state) {
        EXPECT_EQ(text(rest_.wait(id, state), "state"), state) << manager_->output();
    }
    void expect_no_violations() {
        const boost::json::value seen = control_.get("/v1/violations").json;
        EXPECT_TRUE(seen.at("violations").as_array().empty());
    }

    TempFolder folder_;
    RestClient rest_{manager_url(folder_)};
    RestClient control_{fleet_control(folder_)};
    std::optional<Daemon> fleet_;
    std::optional<Daemon> manager_;
};

TEST_F(FleetScenarios, MemoryThatWasNotErasedIsFoundOutAndQuarantined) {
    run_with({"--scenario=" MEMTIDE_CONFIG "/scenarios/not-erased.yaml"});
    const std::string first = compose("host0");
    expect_state(first, "Online");
    EXPECT_EQ(rest_.call("DELETE", "/v1/compositions/" + first).status, 202U);
    expect_state(first, "Released");
    (void)compose("host1");
    EXPECT_TRUE(eventually([this] { return number_in_pool("quarantined") > 0; }))
        << rest_.get("/v1/compositions").body;
    expect_no_violations();
}

TEST_F(FleetScenarios, AHostLosesItsMemoryWithALinkAndHasItAgain) {
    run_with({});
    const std::string id = compose("host0");
    expect_state(id, "Online");
    const auto online = [this] {
        const boost::json::value status = control_.get("/v1/status").json;
        return status.is_object() ? status.at("online").to_number<int>() : -1;
    };
    EXPECT_EQ(online(), 1);
    EXPECT_EQ(control_.call("POST", "/v1/faults", "{fault: link-down, host: host0}").status, 201U);
    EXPECT_TRUE(eventually([&] { return online() == 0; }));
    EXPECT_EQ(control_.call("DELETE", "/v1/faults").status, 204U);
    EXPECT_TRUE(eventually([&] { return online() == 1; }));
    expect_no_violations();
}

// As a vendor's own tools do it, while a manager runs.
TEST_F(FleetScenarios, VirtualSwitchesChangeUnderAManager) {
    run_with({"--vppbs=3"}, 4, "timing: {switch_poll: 200ms}\n");
    const std::string vcss = "/v1/switches/switch0/vcss/";
    const auto manager_sees = [&](int vcs, const std::string& what) {
        return eventually([&] {
            const boost::json::value seen = rest_.get("/v1/switches/switch0").json;
            if (!seen.is_object()) return false;
            for (const boost::json::value& one : seen.at("vcss").as_array())
                if (one.at("id").to_number<int>() == vcs)
                    return fmt::format("{} {}", one.at("enabled").as_bool(),
                                       one.at("vppbs").as_array().size()) == what;
            return what == "gone";
        });
    };
    const std::string one = compose("host0");
    expect_state(one, "Online");

    EXPECT_EQ(control_.call("PUT", vcss + "1?enabled=false").status, 204U);
    ASSERT_TRUE(manager_sees(1, "false 3"));
    EXPECT_EQ(rest_.compose("host1", "256MiB").code(), "host-not-reachable");
    EXPECT_EQ(control_.call("PUT", vcss + "0?enabled=false").status, 409U);
    EXPECT_EQ(control_.call("PUT", vcss + "1?enabled=true").status, 204U);
    ASSERT_TRUE(manager_sees(1, "true 3"));
    const std::string two = compose("host1");
    expect_state(two, "Online");

    EXPECT_EQ(control_.call("PUT", vcss + "0?vppbs=1").status, 204U);
    ASSERT_TRUE(manager_sees(0, "true 1"));
    EXPECT_EQ(rest_.compose("host0", "256MiB").code(), "no-free-vppb");
    EXPECT_EQ(control_.call("PUT", vcss + "0?vppbs=5").status, 204U);
    ASSERT_TRUE(manager_sees(0, "true 5"));
    expect_state(compose("host0"), "Online");

    EXPECT_EQ(control_.call("DELETE", vcss + "1").status, 409U);
    EXPECT_EQ(rest_.call("DELETE", "/v1/compositions/" + two).status, 202U);
    expect_state(two, "Released");
    EXPECT_EQ(control_.call("DELETE", vcss + "1").status, 204U);
    ASSERT_TRUE(manager_sees(1, "gone"));
    EXPECT_EQ(rest_.compose("host1", "256MiB").code(), "host-not-reachable");
    EXPECT_EQ(control_.call("PUT", vcss + "1?upstream_port=1&vppbs=2").status, 204U);
    ASSERT_TRUE(manager_sees(1, "true 2"));
    expect_state(compose("host1"), "Online");
    EXPECT_EQ(text(rest_.get("/v1/compositions/" + one).json, "state"), "Online");
    expect_no_violations();
}

// 4 GiB in one region, for four LDs: added, accepted and given back by the hosts' own drivers.
TEST_F(FleetScenarios, MemoryIsComposedOfADynamicCapacityDevice) {
    run_with({"--kind=dcd", "--ld-size=1GiB"}, 4, "timing: {switch_poll: 200ms}\n");
    EXPECT_EQ(number_in_pool("capacity"), std::uint64_t{4} << 30);
    const auto compose = [this](const std::string& host, const std::string& size) {
        return text(rest_.compose(host, size).json, "id");
    };
    const auto give_back = [this](const std::string& id) {
        EXPECT_EQ(rest_.call("DELETE", "/v1/compositions/" + id).status, 202U);
        expect_state(id, "Released");
    };
    const std::string one = compose("host0", "1GiB");
    const std::string two = compose("host1", "2560MiB");
    expect_state(one, "Online");
    expect_state(two, "Online");
    EXPECT_EQ(number_in_pool("free"), std::uint64_t{512} << 20);
    EXPECT_EQ(text(rest_.get("/v1/devices").json.at("items").at(0), "kind"), "dcd");
    give_back(one);
    // What was host0's is in front of what is host1's, and behind it is some more.
    const std::string three = compose("host0", "1536MiB");
    expect_state(three, "Online");
    EXPECT_EQ(number_in_pool("free"), 0U);
    give_back(two);
    give_back(three);
    EXPECT_EQ(number_in_pool("free"), std::uint64_t{4} << 30);
    expect_no_violations();
}

TEST_F(FleetScenarios, AHostThatRefusesCapacityHasItWhenItNoLongerDoes) {
    run_with({"--kind=dcd", "--ld-size=1GiB"}, 2, "timing: {switch_poll: 200ms}\n");
    EXPECT_EQ(control_.call("PUT", "/v1/hosts/host0/faults/refuses-capacity").status, 204U);
    const std::string id = compose("host0");
    EXPECT_TRUE(eventually([&] {
        return rest_.get("/v1/compositions/" + id + "/history").body.find("it was offered again") !=
               std::string::npos;
    }));
    EXPECT_EQ(control_.call("DELETE", "/v1/hosts/host0/faults/refuses-capacity").status, 204U);
    expect_state(id, "Online");
    expect_no_violations();
}

TEST_F(FleetScenarios, AManagerThatIsKilledFindsDynamicCapacityAgain) {
    run_with({"--kind=dcd", "--ld-size=1GiB"}, 2);
    const std::string one = compose("host0");
    const std::string two = compose("host1");
    manager_->kill();
    manager_.emplace(start_fleet_manager(folder_));
    for (const std::string& id : {one, two}) {
        expect_state(id, "Online");
        EXPECT_EQ(rest_.call("DELETE", "/v1/compositions/" + id).status, 202U);
        expect_state(id, "Released");
    }
    EXPECT_EQ(number_in_pool("free"), std::uint64_t{2} << 30);
    expect_no_violations();
}

TEST_F(FleetScenarios, AScenarioThatDoesNotFitTheFleetIsRefused) {
    process::Command command;
    command.argv = {MEMTIDE_CXL_EMUL, "hosts", "--count=2",
                    "--scenario=" MEMTIDE_CONFIG "/scenarios/links.yaml"};
    command.standard_error = process::Stream::file(folder_.file("err"), false);
    auto child = process::Child::spawn(command);
    ASSERT_TRUE(child);
    const auto exit = child->wait_for(std::chrono::seconds(60));
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 2);
    EXPECT_NE(read_file(folder_.file("err")).find("there is no device \"mld0\""), std::string::npos);
}

}  // namespace
}  // namespace memtide::test
