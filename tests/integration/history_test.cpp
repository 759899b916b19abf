// What the manager remembers of a composition, over restarts.
#include <fmt/format.h>

#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class HistoryOf : public Fabric {
  protected:
    boost::json::value history(const std::string& id) {
        return rest_.get("/v1/compositions/" + id + "/history?limit=1000").json;
    }
    static std::vector<std::string> states(const boost::json::value& history) {
        std::vector<std::string> result;
        for (const auto& event : history.at("items").as_array())
            if (text(event, "type") == "composition.state") result.push_back(text(event, "state"));
        return result;
    }
};

TEST_F(HistoryOf, ACompositionIsCompleteAndInOrderAlsoOverAKill) {
    run_all();
    const std::string other = compose("host1");
    const std::string id = compose("host0");
    expect_state(id, "Online");
    expect_state(other, "Online");
    manager_->kill();
    run_manager();
    expect_ready();
    release(id);
    expect_state(id, "Released");
    const auto whole = history(id);
    EXPECT_EQ(states(whole), (std::vector<std::string>{"Pending", "Binding", "Onlining", "Online", "Draining",
                                                       "Unbinding", "Erasing", "Released"}));
    EXPECT_EQ(whole.at("complete"), true);
    std::string last;
    for (const auto& event : whole.at("items").as_array()) {
        EXPECT_EQ(text(event, "composition"), id);
        EXPECT_LE(last, text(event, "time"));
        last = text(event, "time");
    }
    std::set<std::string> steps;
    for (const auto& step : whole.at("steps").as_array()) {
        steps.insert(text(step, "step"));
        EXPECT_FALSE(step.at("ended").is_null());
    }
    for (const char* step : {"place", "bind", "online", "drain", "unbind", "erase"})
        EXPECT_TRUE(steps.contains(step)) << step;
    // The other one has its own.
    EXPECT_EQ(states(history(other)), (std::vector<std::string>{"Pending", "Binding", "Onlining", "Online"}));
}

}  // namespace
}  // namespace memtide::test
