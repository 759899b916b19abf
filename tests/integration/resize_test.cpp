// Shrinking by an exchange, through the real programs.
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kSmall = 256ULL << 20;
constexpr std::uint64_t kLarge = 2 * kSmall;

// Does everything, but for small regions, which it reports like that.
FakeAgent::Behaviour small_ones(const char* state) {
    return [state,
            otherwise = FakeAgent::obedient()](const json::object& desired) -> std::optional<json::object> {
        if (desired.at("size") != kSmall || desired.at("desired") != "online") return otherwise(desired);
        json::object result;
        result["state"] = state;
        if (std::string_view(state) == "failed")
            result["error"] = json::object{{"code", "no-window"}, {"detail", "no window has room"}};
        return result;
    };
}

class Exchange : public Fabric {
  protected:
    void run(const char* state_of_small_ones, const std::string& timing = "") {
        run_switch();
        run_manager({.timing = std::string(kQuickTiming) + timing});
        agent_ = &run_agent("host0", small_ones(state_of_small_ones));
        expect_ready();
        id_ = compose("host0", "512MiB");
        expect_state(id_, "Online");
    }
    RestAnswer resize(const std::string& size, const std::string& query = "") {
        return rest_.send_json("PATCH", "/v1/compositions/" + id_ + query, R"({"size":")" + size + "\"}");
    }
    json::value now() { return rest_.get("/v1/compositions/" + id_).json; }
    std::string events() { return rest_.get("/v1/events?after=0&follow=false").body; }
    void expect_as_before() {
        const json::value composition = expect_state(id_, "Online");
        EXPECT_EQ(composition.at("size"), kLarge);
        EXPECT_TRUE(composition.at("exchange").is_null());
        EXPECT_EQ(text(composition.at("parts").at(0), "state"), "Online");
        EXPECT_NE(json::serialize(composition.at("steps")).find("undone: "), std::string::npos);
        EXPECT_NE(events().find("composition.resize-failed"), std::string::npos);
        release(id_);
        expect_state(id_, "Released");
        expect_all_free();
    }

    FakeAgent* agent_ = nullptr;
    std::string id_;
};

TEST_F(Exchange, TheSmallerPartIsOnlineBeforeTheLargerGoes) {
    run("found");
    const RestAnswer accepted = resize("256MiB");
    ASSERT_EQ(accepted.status, 202U) << accepted.body;
    EXPECT_EQ(text(accepted.json, "state"), "Resizing");
    EXPECT_EQ(accepted.json.at("exchange").at("size_before"), kLarge);
    EXPECT_TRUE(eventually([&] { return text(now().at("parts").at(1), "state") == "Onlining"; }));
    EXPECT_EQ(text(now().at("parts").at(0), "state"), "Online");
    const RestAnswer other = resize("768MiB");
    EXPECT_EQ(other.status, 409U);
    EXPECT_EQ(other.code(), "exchange-under-way") << other.body;
    agent_->behave(FakeAgent::obedient());
    const json::value smaller = expect_state(id_, "Online");
    EXPECT_EQ(smaller.at("size"), kSmall);
    EXPECT_TRUE(smaller.at("exchange").is_null());
    release(id_);
    expect_state(id_, "Released");
    expect_all_free();
}

TEST_F(Exchange, OfAHostThatRefusesIsUndone) {
    run("failed");
    ASSERT_EQ(resize("256MiB", "?wait=Online&timeout=60s").status, 202U);
    EXPECT_NE(events().find("no window has room"), std::string::npos);
    expect_as_before();
}

TEST_F(Exchange, OfAHostThatDoesNothingIsUndoneAtItsDeadlineAcrossAKill) {
    run("found", ", exchange_deadline: 1s");
    ASSERT_EQ(resize("256MiB").status, 202U);
    manager_->kill();
    run_manager({.timing = std::string(kQuickTiming) + ", exchange_deadline: 1s"});
    expect_as_before();
}

TEST_F(Exchange, IsUndoneByAskingForTheSizeOfBefore) {
    run("found");
    ASSERT_EQ(resize("256MiB").status, 202U);
    ASSERT_EQ(resize("512MiB", "?wait=Online&timeout=60s").status, 202U);
    expect_as_before();
}

TEST_F(Exchange, ReleaseInTheMiddleGivesAllBack) {
    run("found");
    ASSERT_EQ(resize("256MiB").status, 202U);
    release(id_);
    expect_state(id_, "Released");
    expect_all_free();
}

}  // namespace
}  // namespace memtide::test
