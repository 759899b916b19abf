// Server-sent events: in order, complete, and resumable, also over a restart of the manager.
#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

struct SeenEvent {
    std::uint64_t id = 0;
    std::string type;
    boost::json::value data;
};

// Splits a stream into its events; comments are left out.
class EventReader {
  public:
    // The events that became complete with this chunk.
    std::vector<SeenEvent> feed(std::string_view chunk) {
        pending_ += chunk;
        std::vector<SeenEvent> result;
        for (std::size_t end; (end = pending_.find("\n\n")) != std::string::npos;
             pending_.erase(0, end + 2)) {
            SeenEvent event;
            std::string block = pending_.substr(0, end) + "\n";
            for (std::size_t at = 0; at < block.size(); at = block.find('\n', at) + 1) {
                const std::string line = block.substr(at, block.find('\n', at) - at);
                if (line.starts_with("id: ")) event.id = std::stoull(line.substr(4));
                if (line.starts_with("event: ")) event.type = line.substr(7);
                if (line.starts_with("data: ")) event.data = boost::json::parse(line.substr(6));
            }
            if (event.id != 0) result.push_back(std::move(event));
        }
        return result;
    }

  private:
    std::string pending_;
};

class Events : public Fabric {
  protected:
    // Reads from the stream until the composition has been seen in the state; all events up to there.
    std::vector<SeenEvent> read_until(const std::string& target, http::Headers headers, const std::string& id,
                                      const std::string& state) {
        RestClient client(manager_url(folder_));
        EventReader reader;
        std::vector<SeenEvent> seen;
        bool found = false;
        const RestAnswer answer = client.stream(target, std::move(headers), [&](std::string_view chunk) {
            for (SeenEvent& event : reader.feed(chunk)) {
                found |= text(event.data, "composition") == id && text(event.data, "state") == state;
                seen.push_back(std::move(event));
                if (found) return false;
            }
            return true;
        });
        EXPECT_TRUE(found) << answer.status << answer.body;
        return seen;
    }
    static std::vector<std::string> states(const std::vector<SeenEvent>& events, const std::string& id) {
        std::vector<std::string> result;
        for (const SeenEvent& event : events)
            if (event.type == "composition.state" && text(event.data, "composition") == id)
                result.push_back(text(event.data, "state"));
        return result;
    }
};

TEST_F(Events, ACompositionsLifeComesInOrder) {
    run_all();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    release(id);
    const auto events = read_until("/v1/events?after=0", {}, id, "Released");
    EXPECT_EQ(states(events, id), (std::vector<std::string>{"Pending", "Binding", "Onlining", "Online",
                                                            "Draining", "Unbinding", "Erasing", "Released"}));
    std::uint64_t last = 0;
    for (const SeenEvent& event : events) {
        EXPECT_GT(event.id, last);
        last = event.id;
        EXPECT_EQ(event.data.at("id").to_number<std::uint64_t>(), event.id);
        EXPECT_EQ(text(event.data, "type"), event.type);
    }
    EXPECT_EQ(events.front().type.empty(), false);
}

TEST_F(Events, WithoutAnIdOnlyWhatIsNewComes) {
    run_all();
    const std::string before = compose("host0");
    expect_state(before, "Online");
    std::string id;
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        RestClient client(manager_url(folder_));
        client.call("DELETE", "/v1/compositions/" + before);
    });
    const auto events = read_until("/v1/events", {}, before, "Released");
    later.join();
    EXPECT_EQ(states(events, before),
              (std::vector<std::string>{"Draining", "Unbinding", "Erasing", "Released"}));
}

TEST_F(Events, AStreamIsResumedWhereItBrokeOffAlsoAfterARestart) {
    run_all();
    const std::string id = compose("host0");
    const auto first = read_until("/v1/events?after=0", {}, id, "Online");
    manager_->kill();
    run_manager();
    release(id);
    const auto second =
        read_until("/v1/events", {{"Last-Event-ID", std::to_string(first.back().id)}}, id, "Released");
    EXPECT_EQ(states(second, id), (std::vector<std::string>{"Draining", "Unbinding", "Erasing", "Released"}));
    EXPECT_GT(second.front().id, first.back().id);
}

TEST_F(Events, WhoHasSeenWhatIsNotKeptAnyMoreIsToldOfAGap) {
    // The fewest events that a manager keeps, and more than that.
    run_all({}, {.hosts = 2, .timing = {}, .limits = "events: 100", .log_level = "error"});
    for (int report = 0; report < 20; ++report) {
        std::string warnings;  // each is an event
        for (int i = 0; i < 64; ++i)
            warnings += fmt::format(R"({}{{"code":"w{}-{}"}})", i == 0 ? "" : ",", report, i);
        const std::string body = R"({"boot_id":"b","warnings":[)" + warnings + "]}";
        EXPECT_EQ(rest_.send_json("PUT", "/v1/hosts/host1/observed", body).status, 204U);
    }
    const std::string id = compose("host0");
    release(id, "?force=true");
    expect_state(id, "Released");
    const auto resumed = read_until("/v1/events", {{"Last-Event-ID", "1"}}, id, "Released");
    ASSERT_FALSE(resumed.empty());
    EXPECT_EQ(resumed.front().type, "gap");
    EXPECT_EQ(text(resumed.front().data, "code"), "events-forgotten");
    // It goes on right behind the gap, and a client that comes back with the gap's id misses nothing more.
    EXPECT_EQ(resumed.at(1).id, resumed.front().id + 1);
    manager_->kill();
    run_manager();
    const auto again = read_until("/v1/events", {{"Last-Event-ID", "1"}}, id, "Released");
    EXPECT_EQ(again.front().type, "gap");
    const auto behind =
        read_until("/v1/events", {{"Last-Event-ID", std::to_string(resumed.front().id)}}, id, "Released");
    EXPECT_NE(behind.front().type, "gap");
    // Asking for everything is no gap.
    EXPECT_NE(read_until("/v1/events?after=0", {}, id, "Released").front().type, "gap");
}

TEST_F(Events, AnIdThatIsYetToComeIsOfAnotherStateFile) {
    run_all();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    const auto events = read_until("/v1/events", {{"Last-Event-ID", "999999"}}, id, "Online");
    // The gap's id is 0, which readers of a stream leave out; everything that is kept follows it.
    EXPECT_EQ(states(events, id), (std::vector<std::string>{"Pending", "Binding", "Onlining", "Online"}));
}

TEST_F(Events, OnlyWhatWasAskedForComes) {
    run_all();
    const std::string other = compose("host1");
    const std::string id = compose("host0");
    expect_state(other, "Online");
    expect_state(id, "Online");
    for (const SeenEvent& event : read_until("/v1/events?after=0&host=host0", {}, id, "Online"))
        EXPECT_EQ(text(event.data, "host"), "host0");
    for (const SeenEvent& event : read_until("/v1/events?after=0&composition=" + id, {}, id, "Online"))
        EXPECT_EQ(text(event.data, "composition"), id);
    for (const SeenEvent& event : read_until("/v1/events?after=0&type=composition", {}, id, "Online"))
        EXPECT_TRUE(event.type.starts_with("composition.")) << event.type;
    for (const SeenEvent& event : read_until("/v1/events?after=0&type=composition.state", {}, id, "Online"))
        EXPECT_EQ(event.type, "composition.state");
}

}  // namespace
}  // namespace memtide::test
