// The agent's side of the channel against a manager that behaves in every way.
#include "tiering-agent/fabric/channel.h"

#include <deque>
#include <mutex>
#include <thread>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "common/http/server.h"
#include "tests/integration/background.h"
#include "tests/integration/eventually.h"

namespace memtide::agent {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using test::eventually;

std::string state(std::uint64_t revision, std::string_view host = "host0") {
    return "{\"revision\":" + std::to_string(revision) + ",\"host\":\"" + std::string(host) +
           R"(","regions":[{"composition":"c-)" + std::to_string(revision) +
           R"(","region":0,"serials":["0x1"],"size":268435456,"desired":"online"}]})";
}

// Answers from a script; when that is at its end it keeps the question until the test has more.
class FakeManager {
  public:
    explicit FakeManager(std::string address = "127.0.0.1:0") : address_(std::move(address)) {
        router_.add("GET", "/v1/hosts/{host}/desired",
                    [this](http::Request r) { return desired(std::move(r)); });
        router_.add("PUT", "/v1/hosts/{host}/observed",
                    [this](http::Request r) { return observed(std::move(r)); });
        background_.call([this] {
            server_ = std::make_unique<http::Server>(background_.executor(), router_);
            listened_ = server_->listen(address_).has_value();
            return 0;
        });
    }
    ~FakeManager() {
        background_.call([this] {
            server_.reset();
            return 0;
        });
        background_.stop();
    }
    FakeManager(const FakeManager&) = delete;
    FakeManager& operator=(const FakeManager&) = delete;

    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
    [[nodiscard]] bool listened() const { return listened_; }
    void answer(http::Response response) {
        const std::lock_guard lock(mutex_);
        answers_.push_back(std::move(response));
    }
    void answer(std::string body) { answer(http::json_response(200, std::move(body))); }
    void refuse_reports(unsigned status, int times) {
        const std::lock_guard lock(mutex_);
        refuse_status_ = status;
        refusals_ = times;
    }
    std::vector<std::string> asked() {
        const std::lock_guard lock(mutex_);
        return asked_;
    }
    std::vector<std::string> reports() {
        const std::lock_guard lock(mutex_);
        return reports_;
    }

  private:
    std::optional<http::Response> next_answer() {
        const std::lock_guard lock(mutex_);
        if (answers_.empty()) return std::nullopt;
        auto answer = std::move(answers_.front());
        answers_.pop_front();
        return answer;
    }
    asio::awaitable<http::Response> desired(http::Request request) {
        {
            const std::lock_guard lock(mutex_);
            const auto after = request.query_value("after");
            asked_.push_back(after ? std::string(*after) : "nothing");
        }
        asio::steady_timer timer(co_await asio::this_coro::executor);
        for (;;) {
            if (auto answer = next_answer()) co_return std::move(*answer);
            timer.expires_after(2ms);
            co_await timer.async_wait(asio::use_awaitable);
        }
    }
    asio::awaitable<http::Response> observed(http::Request request) {
        const std::lock_guard lock(mutex_);
        if (refusals_ > 0) {
            --refusals_;
            co_return http::problem(refuse_status_, "internal-error", "on purpose");
        }
        reports_.push_back(std::move(request.body));
        co_return http::Response{.status = 204, .headers = {}, .body = {}, .stream = {}};
    }

    std::string address_;
    http::Router router_;
    std::mutex mutex_;
    std::deque<http::Response> answers_;
    std::vector<std::string> asked_;
    std::vector<std::string> reports_;
    unsigned refuse_status_ = 500;
    int refusals_ = 0;
    bool listened_ = false;
    test::Background background_;
    std::unique_ptr<http::Server> server_;
};

class RunningChannel {
  public:
    explicit RunningChannel(std::string url, ChannelTiming timing = quick()) {
        background_.call([&] {
            channel_ =
                std::make_unique<Channel>(background_.executor(),
                                          ChannelConfig{.manager = std::move(url),
                                                        .host = HostId{"host0"},
                                                        .identity = {.version = "1.0", .boot_id = "boot"},
                                                        .timing = timing},
                                          [this](const Desired& desired) {
                                              const std::lock_guard lock(mutex_);
                                              revisions_.push_back(desired.revision);
                                          });
            channel_->start();
            return 0;
        });
    }
    ~RunningChannel() {
        background_.call([this] {
            channel_.reset();
            return 0;
        });
        background_.stop();
    }
    RunningChannel(const RunningChannel&) = delete;
    RunningChannel& operator=(const RunningChannel&) = delete;

    static ChannelTiming quick() {
        return {.long_poll = 30s, .heartbeat = 60s, .request = 10s, .retry_min = 5ms, .retry_max = 20ms};
    }
    std::vector<std::uint64_t> revisions() {
        const std::lock_guard lock(mutex_);
        return revisions_;
    }
    void observe(std::uint64_t revision) {
        channel_->set_observed({.revision_seen = revision, .memdevs = {}, .regions = {}, .warnings = {}});
    }

  private:
    std::mutex mutex_;
    std::vector<std::uint64_t> revisions_;
    test::Background background_;
    std::unique_ptr<Channel> channel_;
};

using Revisions = std::vector<std::uint64_t>;

TEST(Channel, HandsOnEachNewStateOnceAndAsksForWhatComesAfterIt) {
    FakeManager manager;
    RunningChannel channel(manager.url());
    manager.answer(state(4));
    manager.answer(state(4));
    manager.answer(state(5));
    EXPECT_TRUE(eventually([&] { return channel.revisions() == Revisions{4, 5}; }));
    EXPECT_TRUE(
        eventually([&] { return manager.asked() == std::vector<std::string>{"nothing", "4", "4", "5"}; }));
}

TEST(Channel, SurvivesEveryBadAnswerAndGoesOn) {
    FakeManager manager;
    RunningChannel channel(manager.url());
    manager.answer(state(1));
    manager.answer("garbage {{{");
    manager.answer("");
    manager.answer("[1,2,3]");
    manager.answer(state(9, "host1"));
    manager.answer(http::problem(500, "internal-error", "broken"));
    manager.answer(http::problem(404, "unknown-host", "who?"));
    manager.answer(http::json_response(204, ""));
    manager.answer(std::string(200'000, '['));
    manager.answer(state(2));
    EXPECT_TRUE(eventually([&] { return channel.revisions() == Revisions{1, 2}; }));
    const auto asked = manager.asked();
    EXPECT_EQ(asked.at(9), "1") << "after bad answers it must still ask from the last good state";
}

TEST(Channel, TakesARevisionThatWentBackAfterTheManagerLostItsMemory) {
    FakeManager manager;
    RunningChannel channel(manager.url());
    manager.answer(state(70));
    manager.answer(state(2));
    EXPECT_TRUE(eventually([&] { return channel.revisions() == Revisions{70, 2}; }));
}

TEST(Channel, WaitsForAManagerThatIsNotThereYetAndForOneThatRestarts) {
    auto first = std::make_unique<FakeManager>();
    const std::string url = first->url();
    const std::string address = url.substr(7);
    first.reset();
    RunningChannel channel(url);  // nobody listens
    channel.observe(0);
    auto second = std::make_unique<FakeManager>(address);
    ASSERT_TRUE(second->listened());
    second->answer(state(1));
    EXPECT_TRUE(
        eventually([&] { return channel.revisions() == Revisions{1} && !second->reports().empty(); }));
    second.reset();
    FakeManager third(address);
    ASSERT_TRUE(third.listened());
    third.answer(state(2));
    EXPECT_TRUE(eventually([&] { return channel.revisions() == Revisions{1, 2}; }));
    channel.observe(2);
    EXPECT_TRUE(eventually([&] { return !third.reports().empty(); }));
}

TEST(Channel, ReportsEachChangeAtOnce) {
    FakeManager manager;
    RunningChannel channel(manager.url());
    channel.observe(1);
    ASSERT_TRUE(eventually([&] { return manager.reports().size() == 1; }));
    channel.observe(2);
    ASSERT_TRUE(eventually([&] { return manager.reports().size() == 2; }));
    EXPECT_EQ(boost::json::parse(manager.reports()[1]).at("revision_seen").to_number<int>(), 2);
}

TEST(Channel, RepeatsTheReportAsAHeartbeat) {
    FakeManager manager;
    auto timing = RunningChannel::quick();
    timing.heartbeat = 20ms;
    RunningChannel channel(manager.url(), timing);
    channel.observe(1);
    EXPECT_TRUE(eventually([&] { return manager.reports().size() >= 4; }));
    EXPECT_EQ(manager.reports()[0], manager.reports()[3]);
}

TEST(Channel, ReportsTheNewestStateOnceTheManagerTakesReportsAgain) {
    FakeManager manager;
    manager.refuse_reports(500, 3);
    RunningChannel channel(manager.url());
    channel.observe(1);
    channel.observe(2);
    ASSERT_TRUE(eventually([&] { return !manager.reports().empty(); }));
    EXPECT_EQ(boost::json::parse(manager.reports().back()).at("revision_seen").to_number<int>(), 2);
}

TEST(Channel, ReportThatIsRefusedAsNotOursIsTriedAgainNotDropped) {
    FakeManager manager;
    manager.refuse_reports(422, 2);
    RunningChannel channel(manager.url());
    channel.observe(1);
    EXPECT_TRUE(eventually([&] { return manager.reports().size() == 1; }));
}

TEST(Channel, DoesNotHammerAManagerThatAnswersAtOnceForEver) {
    FakeManager manager;
    auto timing = RunningChannel::quick();
    timing.retry_min = timing.retry_max = 60s;
    RunningChannel channel(manager.url(), timing);
    for (int i = 0; i < 50; ++i) manager.answer(state(1));
    EXPECT_TRUE(eventually([&] { return manager.asked().size() >= 2; }));
    std::this_thread::sleep_for(100ms);  // a tight loop would use up the answers many times over
    EXPECT_LE(manager.asked().size(), 3U);
}

TEST(Channel, CanBeStoppedInTheMiddleOfALongPoll) {
    FakeManager manager;
    RunningChannel channel(manager.url());
    EXPECT_TRUE(eventually([&] { return !manager.asked().empty(); }));
}

}  // namespace
}  // namespace memtide::agent
