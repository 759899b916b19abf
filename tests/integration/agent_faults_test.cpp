// Agents that are not there, mistaken, repetitive, or cannot do what is asked.
#include <fmt/format.h>

#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class AgentFaults : public Fabric {
  protected:
    void SetUp() override {
        run_switch();
        run_manager();
        expect_ready();
    }
    RestAnswer report(const std::string& host, const boost::json::value& composition,
                      const std::string& state) {
        return rest_.send_json(
            "PUT", "/v1/hosts/" + host + "/observed",
            fmt::format(
                R"({{"agent_version":"t","boot_id":"b","revision_seen":{},"regions":[)"
                R"({{"composition":"{}","region":0,"serials":["{}"],"state":"{}","node":1,"name":"region0",)"
                R"("online_bytes":{}}}]}})",
                number("/v1/hosts/" + host + "/desired", "revision"), text(composition, "id"),
                text(only_part(composition), "serial"), state, composition.at("size").as_int64()));
    }
    // Waits until the composition waits for something that has `what` in it.
    void expect_waiting_for(const std::string& id, const std::string& what) {
        std::string last;
        EXPECT_TRUE(eventually([&] {
            last = text(rest_.get("/v1/compositions/" + id).json, "waiting_for");
            return last.find(what) != std::string::npos;
        })) << last;
    }
};

TEST_F(AgentFaults, AnAgentThatNeverReportsIsWaitedForByNameAndTheReleaseStillWorks) {
    const std::string id = compose("host0");
    expect_waiting_for(id, "the agent of host0 to online the memory");
    EXPECT_EQ(state_of(id), "Onlining");
    // It may be that the host has the memory by now; only force takes it without hearing from the agent.
    release(id);
    expect_waiting_for(id, "the agent of host0 to take the memory offline");
    release(id, "?force=true");
    const boost::json::value released = expect_state(id, "Released");
    EXPECT_EQ(released.at("forced"), true);
    expect_all_free();
}

TEST_F(AgentFaults, AnAgentThatComesLateFinishesARelease) {
    const std::string id = compose("host0");
    expect_waiting_for(id, "the agent of host0");
    release(id);
    run_agent("host0");
    expect_state(id, "Released");
}

TEST_F(AgentFaults, AnAgentThatSeesTheMemoryAndDoesNothingIsNamedWithWhatItSays) {
    run_agent("host0", FakeAgent::idle());
    expect_waiting_for(compose("host0"), "it reports: found");
}

TEST_F(AgentFaults, AReportAboutAnotherHostsCompositionIsRefusedAsAWhole) {
    const std::string id = compose("host0");
    expect_waiting_for(id, "the agent of host0");
    const RestAnswer answer = report("host1", rest_.get("/v1/compositions/" + id).json, "online");
    EXPECT_EQ(answer.status, 422U) << answer.body;
    EXPECT_EQ(answer.code(), "not-your-composition");
    EXPECT_EQ(state_of(id), "Onlining");
    EXPECT_TRUE(rest_.get("/v1/hosts/host1").json.at("agent").at("last_report").is_null());
}

TEST_F(AgentFaults, AReportWithAnotherSerialNumberIsRefused) {
    const std::string id = compose("host0");
    expect_waiting_for(id, "the agent of host0");
    boost::json::value other = rest_.get("/v1/compositions/" + id).json;
    other.at("parts").at(0).as_object()["serial"] = "0x1";
    EXPECT_EQ(report("host0", other, "online").code(), "invalid-request");
    EXPECT_EQ(state_of(id), "Onlining");
}

TEST_F(AgentFaults, AReportMadeTwiceChangesNothingTheSecondTime) {
    const std::string id = compose("host0");
    expect_waiting_for(id, "the agent of host0");
    const boost::json::value composition = rest_.get("/v1/compositions/" + id).json;
    EXPECT_EQ(report("host0", composition, "online").status, 204U);
    const boost::json::value online = expect_state(id, "Online");
    EXPECT_EQ(report("host0", composition, "online").status, 204U);
    EXPECT_EQ(report("host0", composition, "online").status, 204U);
    EXPECT_EQ(rest_.get("/v1/compositions/" + id).json, online);
}

TEST_F(AgentFaults, ReportsThatAreNoneAreRefusedAndNotApplied) {
    for (const auto* body :
         {"[]", "{}", R"({"boot_id":7})", R"({"boot_id":"b","regions":[{"composition":1}]})",
          R"({"boot_id":"b","memdevs":[{"name":"mem0"}]})"})
        EXPECT_EQ(rest_.send_json("PUT", "/v1/hosts/host0/observed", body).code(), "invalid-request") << body;
    EXPECT_EQ(rest_.send_json("PUT", "/v1/hosts/host0/observed", "{").code(), "invalid-json");
    EXPECT_TRUE(rest_.get("/v1/hosts/host0").json.at("agent").at("last_report").is_null());
}

TEST_F(AgentFaults, AReleaseShowsWhoHoldsTheMemoryAndGoesOnWhenTheyLetGo) {
    FakeAgent& agent = run_agent("host0", FakeAgent::held_by(4711, "redis-server"));
    const std::string id = compose("host0");
    expect_state(id, "Online");
    release(id);
    EXPECT_TRUE(eventually([&] {
        const boost::json::value now = rest_.get("/v1/compositions/" + id).json;
        return !now.at("holders").as_array().empty();
    }));
    const boost::json::value now = rest_.get("/v1/compositions/" + id).json;
    EXPECT_EQ(text(now, "state"), "Draining");
    EXPECT_EQ(now.at("holders").at(0).at("pid"), 4711);
    EXPECT_EQ(text(now.at("holders").at(0), "command"), "redis-server");
    agent.behave(FakeAgent::obedient());
    expect_state(id, "Released");
}

TEST_F(AgentFaults, ForceTakesTheMemoryFromUnderItsHoldersAndSaysSo) {
    run_agent("host0", FakeAgent::held_by(4711, "redis-server"));
    const std::string id = compose("host0");
    expect_state(id, "Online");
    release(id);
    expect_waiting_for(id, "host0");
    release(id, "?force=true");
    EXPECT_EQ(expect_state(id, "Released").at("forced"), true);
}

TEST_F(AgentFaults, AHostThatLosesItsMemoryIsNotOnlineAnyMore) {
    FakeAgent& agent = run_agent("host0");
    const std::string id = compose("host0");
    expect_state(id, "Online");
    agent.behave(FakeAgent::blind());
    EXPECT_TRUE(eventually([&] { return state_of(id) != "Online"; }));
    expect_waiting_for(id, "it reports: absent");
    agent.behave(FakeAgent::obedient());
    expect_state(id, "Online");
}

TEST_F(AgentFaults, TheDesiredStateIsAnsweredAtOnceWhenItIsNewAndElseWhenItChanges) {
    const boost::json::value before = rest_.get("/v1/hosts/host0/desired").json;
    const std::uint64_t revision = before.at("revision").to_number<std::uint64_t>();
    EXPECT_TRUE(before.at("regions").as_array().empty());
    // From another life of the manager, or after a restore: answered at once.
    EXPECT_EQ(rest_.get("/v1/hosts/host0/desired?after=999999&timeout=60s").json, before);
    EXPECT_EQ(rest_.get(fmt::format("/v1/hosts/host0/desired?after={}&timeout=50ms", revision)).json, before);
    const std::string id = compose("host0");
    const boost::json::value after =
        rest_.get(fmt::format("/v1/hosts/host0/desired?after={}&timeout=60s", revision)).json;
    EXPECT_GT(after.at("revision").to_number<std::uint64_t>(), revision);
    EXPECT_EQ(text(after.at("regions").at(0), "composition"), id);
    EXPECT_EQ(text(after.at("regions").at(0), "desired"), "online");
}

}  // namespace
}  // namespace memtide::test
