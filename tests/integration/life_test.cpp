// The whole life of a composition through the real programs.
#include <algorithm>
#include <set>

#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class Life : public Fabric {};

// The names of the steps, each checked to have ended and to have a time.
std::vector<std::string> steps_of(const boost::json::value& composition) {
    std::vector<std::string> names;
    for (const boost::json::value& step : composition.at("steps").as_array()) {
        names.push_back(text(step, "step"));
        EXPECT_TRUE(step.at("ended").is_string()) << names.back();
        EXPECT_GE(step.at("duration_ms").to_number<double>(), 0) << names.back();
    }
    return names;
}

TEST_F(Life, ComposedMemoryGoesOnlineAndComesBack) {
    run_all({.bind_time = std::chrono::milliseconds(60)});
    const RestAnswer created = rest_.compose("host0", "256MiB");
    ASSERT_EQ(created.status, 202U) << created.body;
    const std::string id = text(created.json, "id");
    EXPECT_EQ(created.headers.at("Location"), "/v1/compositions/" + id);
    EXPECT_TRUE(created.headers.contains("ETag"));

    const boost::json::value online = expect_state(id, "Online");
    EXPECT_EQ(online.at("node"), 1);
    EXPECT_EQ(online.at("size"), 268435456);
    EXPECT_EQ(text(online, "host"), "host0");
    EXPECT_TRUE(text(only_part(online), "serial").starts_with("0x4d540001000000"));
    EXPECT_TRUE(online.at("waiting_for").is_null());
    EXPECT_EQ(number("/v1/pool", "composed"), 268435456U);
    EXPECT_EQ(number("/v1/hosts/host0", "composed"), 268435456U);

    release(id);
    const boost::json::value released = expect_state(id, "Released");
    // Memory whose past the manager does not know is erased first.
    EXPECT_EQ(steps_of(released), (std::vector<std::string>{"place", "erase-before-bind", "bind", "online",
                                                            "drain", "unbind", "erase"}));
    EXPECT_TRUE(released.at("node").is_null());
    expect_all_free();
}

TEST_F(Life, TheBindTakesAsLongAsTheSwitchAndTheOverheadDoesNotCountIt) {
    run_all({.bind_time = std::chrono::milliseconds(500)});
    const boost::json::value online = expect_state(compose("host0"), "Online");
    double bind_ms = 0;
    for (const boost::json::value& step : online.at("steps").as_array())
        if (text(step, "step") == "bind") bind_ms = step.at("duration_ms").to_number<double>();
    EXPECT_GE(bind_ms, 500);
    EXPECT_LT(online.at("manager_overhead_ms").to_number<double>(), bind_ms);
}

TEST_F(Life, MemoryErasedByTheManagerIsNotErasedAgainBeforeTheNextBind) {
    run_all({.lds = 1});
    const std::string first = compose("host0");
    expect_state(first, "Online");
    release(first);
    expect_state(first, "Released");
    const boost::json::value second = expect_state(compose("host1"), "Online");
    EXPECT_EQ(steps_of(second), (std::vector<std::string>{"place", "bind", "online"}));
}

TEST_F(Life, LogicalDevicesAreCarvedForASizeThatNoneHas) {
    run_all();
    const std::string id = compose("host0", "512MiB");
    const boost::json::value online = expect_state(id, "Online");
    EXPECT_EQ(online.at("size"), 536870912);
    EXPECT_NE(boost::json::serialize(online.at("steps")).find("\"allocate\""), std::string::npos);
    release(id);
    expect_state(id, "Released");
    expect_all_free();
}

TEST_F(Life, FreeMemoryInPiecesIsJoinedWhereItCanBe) {
    run_all();
    std::vector<std::string> ids;
    for (int i = 0; i < 4; ++i) {
        ids.push_back(compose("host0"));
        expect_state(ids.back(), "Online");
    }
    for (const int i : {0, 2, 3}) {
        release(ids[static_cast<std::size_t>(i)]);
        expect_state(ids[static_cast<std::size_t>(i)], "Released");
    }
    // Of the three that are free two are side by side, and not the first two.
    const std::string joined = compose("host0", "512MiB");
    const boost::json::value online = expect_state(joined, "Online");
    const std::vector<std::string> steps = steps_of(online);
    EXPECT_EQ(std::ranges::count(steps, "allocate"), 2);
    release(joined);
    expect_state(joined, "Released");

    const boost::json::value failed = rest_.wait(compose("host0", "768MiB"), "Failed");
    EXPECT_EQ(text(failed.at("reason"), "code"), "allocate-refused");
    const RestAnswer again = rest_.compose("host0", "768MiB");
    EXPECT_EQ(again.code(), "no-fitting-device");
    EXPECT_NE(again.body.find("it refused to carve 768MiB"), std::string::npos) << again.body;
    EXPECT_EQ(number("/v1/pool", "largest_free"), 536870912U);

    release(ids[1]);
    expect_state(ids[1], "Released");
    const std::string all = compose("host0", "1GiB");
    expect_state(all, "Online");
    release(all);
    expect_state(all, "Released");
    expect_all_free();
}

TEST_F(Life, EveryCompositionGetsMemoryOfItsOwn) {
    run_all();
    std::set<std::string> serials;
    std::vector<std::string> ids;
    for (const char* host : {"host0", "host1", "host0", "host1"}) ids.push_back(compose(host));
    for (const std::string& id : ids) serials.insert(text(only_part(expect_state(id, "Online")), "serial"));
    EXPECT_EQ(serials.size(), 4U);
    EXPECT_EQ(rest_.compose("host0", "256MiB").code(), "exceeds-free");
    for (const std::string& id : ids) release(id);
    for (const std::string& id : ids) expect_state(id, "Released");
    expect_all_free();
}

TEST_F(Life, ALeaseEndsByItself) {
    run_all();
    const RestAnswer created = rest_.send_json("POST", "/v1/compositions",
                                               R"({"host":"host0","size":"256MiB","ttl":1,"tenant":"t"})");
    ASSERT_EQ(created.status, 202U) << created.body;
    EXPECT_EQ(created.json.at("ttl_seconds"), 1);
    EXPECT_EQ(text(created.json, "tenant"), "t");
    expect_state(text(created.json, "id"), "Released");
}

TEST_F(Life, EndedCompositionsStayInTheListAndAreFoundByState) {
    run_all();
    const std::string first = compose("host0");
    const std::string second = compose("host1");
    expect_state(first, "Online");
    expect_state(second, "Online");
    release(first);
    expect_state(first, "Released");
    const auto ids = [this](const std::string& query) {
        std::vector<std::string> result;
        std::string page;
        do {
            const boost::json::value answer = rest_.get("/v1/compositions?limit=1" + query + page).json;
            for (const auto& item : answer.at("items").as_array()) result.push_back(text(item, "id"));
            page = answer.at("next").is_null() ? "" : "&page=" + text(answer, "next");
        } while (!page.empty());
        return result;
    };
    EXPECT_EQ(ids(""), (std::vector{first, second}));
    EXPECT_EQ(ids("&state=Online"), std::vector{second});
    EXPECT_EQ(ids("&host=host0"), std::vector{first});
    EXPECT_EQ(ids("&host=host7"), std::vector<std::string>{});
}

TEST_F(Life, TheInventoryShowsWhatIsBoundWhere) {
    run_all();
    const std::string id = compose("host1");
    expect_state(id, "Online");
    const boost::json::value topology = rest_.get("/v1/topology").json;
    int claims = 0;
    for (const auto& ld : topology.at("devices").at(0).at("lds").as_array())
        if (text(ld, "composition") == id) {
            ++claims;
            EXPECT_EQ(text(ld, "use"), "bound");
            EXPECT_EQ(ld.at("bound_at").at("vcs"), 1);
        }
    EXPECT_EQ(claims, 1);
    EXPECT_EQ(topology.at("hosts").as_array().size(), 2U);
    EXPECT_EQ(topology.at("hosts").at(1).at("agent").at("connected"), true);
    const std::string device = text(topology.at("devices").at(0), "name");
    EXPECT_EQ(rest_.get("/v1/devices/" + device).status, 200U);
    EXPECT_EQ(rest_.get("/v1/switches/switch0").json.at("up"), true);
    EXPECT_NE(rest_.get("/metrics").body.find("memtide_fm_compositions_active 1"), std::string::npos);
}

}  // namespace
}  // namespace memtide::test
