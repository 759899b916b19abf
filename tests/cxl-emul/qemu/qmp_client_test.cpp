#include "cxl-emul/qemu/qmp_client.h"

#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <gmock/gmock.h>

#include "tests/cxl-emul/qemu/fake_qemu.h"

namespace memtide::emul {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

// Starts a client on a fake QEMU and runs `work` with it.
void converse(FakeQemu::Script script, const std::function<asio::awaitable<void>(QmpClient&)>& work) {
    FakeQemu qemu(std::move(script));
    asio::io_context context(1);
    QmpClient client(context.get_executor(), qemu.take_client());
    run_to_end(context, work(client));
    client.close();
    context.restart();
    context.run();  // what is left ends
}

TEST(QmpClient, CommandGetsItsAnswer) {
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            const auto command = qemu.hear();
            EXPECT_EQ(command.at("execute").as_string(), "device_add");
            EXPECT_EQ(command.at("arguments").at("sn").to_number<std::uint64_t>(), 0xfd54000100000001U);
            qemu.answer(command, "done");
        },
        [](QmpClient& client) -> asio::awaitable<void> {
            EXPECT_TRUE(co_await client.handshake());
            json::object arguments;
            arguments["sn"] = std::uint64_t{0xfd54000100000001};
            auto answer = co_await client.execute("device_add", std::move(arguments));
            EXPECT_TRUE(answer);
            if (!answer) co_return;
            EXPECT_EQ(answer->as_string(), "done");
        });
}

TEST(QmpClient, RefusalCarriesQemusOwnWords) {
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            qemu.refuse(qemu.hear(), "slot 0 function 0 already occupied");
        },
        [](QmpClient& client) -> asio::awaitable<void> {
            EXPECT_TRUE(co_await client.handshake());
            auto answer = co_await client.execute("device_add");
            EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
            EXPECT_EQ(answer.error().message, "QMP device_add: slot 0 function 0 already occupied");
        });
}

TEST(QmpClient, OverlappingCommandsGetTheirOwnAnswersInAnyOrder) {
    using namespace asio::experimental::awaitable_operators;
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            const auto first = qemu.hear();
            const auto second = qemu.hear();
            qemu.answer(second, second.at("execute"));
            qemu.answer(first, first.at("execute"));
        },
        [](QmpClient& client) -> asio::awaitable<void> {
            EXPECT_TRUE(co_await client.handshake());
            auto both = co_await (client.execute("one") && client.execute("two"));
            EXPECT_EQ(std::get<0>(both)->as_string(), "one");
            EXPECT_EQ(std::get<1>(both)->as_string(), "two");
        });
}

TEST(QmpClient, EventsReachTheirHandlerAlsoBetweenCommandAndAnswer) {
    std::vector<std::string> events;
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            const auto command = qemu.hear();
            qemu.say(R"({"event": "STOP", "timestamp": {"seconds": 1, "microseconds": 2}})");
            qemu.say(R"({"event": "VSERPORT_CHANGE", "data": {"open": true, "id": "guestport"}})");
            qemu.answer(command, nullptr);
        },
        [&events](QmpClient& client) -> asio::awaitable<void> {
            client.on_event([&events](const std::string& name, const json::object& data) {
                events.push_back(name + (data.contains("open") ? " open" : ""));
            });
            EXPECT_TRUE(co_await client.handshake());
            EXPECT_TRUE(co_await client.execute("stop"));
        });
    EXPECT_THAT(events, ElementsAre("STOP", "VSERPORT_CHANGE open"));
}

TEST(QmpClient, MonitorLineGivesItsText) {
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            const auto command = qemu.hear();
            EXPECT_EQ(command.at("arguments").at("command-line").as_string(), "i /w 0xcf8");
            qemu.answer(command, "portl[0x0cf8] = 0x80000000\r\n");
        },
        [](QmpClient& client) -> asio::awaitable<void> {
            EXPECT_TRUE(co_await client.handshake());
            auto text = co_await client.monitor("i /w 0xcf8");
            EXPECT_EQ(*text, "portl[0x0cf8] = 0x80000000\r\n");
        });
}

TEST(QmpClient, ConnectionThatClosesFailsWhatWaits) {
    std::optional<Error> closed;
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            qemu.hear();
        },
        [&closed](QmpClient& client) -> asio::awaitable<void> {
            client.on_close([&closed](const Error& why) { closed = why; });
            EXPECT_TRUE(co_await client.handshake());
            auto answer = co_await client.execute("device_add");
            EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
            auto later = co_await client.execute("device_del");
            EXPECT_EQ(later.error().code, ErrorCode::kUnavailable);
        });
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->code, ErrorCode::kUnavailable);
}

TEST(QmpClient, PeerThatClosesBeforeTheGreetingFailsTheHandshake) {
    converse([](FakeQemu&) {},
             [](QmpClient& client) -> asio::awaitable<void> {
                 EXPECT_EQ((co_await client.handshake()).error().code, ErrorCode::kUnavailable);
             });
}

TEST(QmpClient, PeerThatNeverGreetsTimesOut) {
    converse([](FakeQemu& qemu) { qemu.hear(); },
             [](QmpClient& client) -> asio::awaitable<void> {
                 auto greeted = co_await client.handshake(milliseconds(20));
                 EXPECT_EQ(greeted.error().code, ErrorCode::kTimeout);
             });
}

TEST(QmpClient, AnswerAfterItsDeadlineIsNotTakenForTheNextOne) {
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            const auto late = qemu.hear();
            const auto next = qemu.hear();  // sent after the first one timed out
            qemu.answer(late, "late");
            qemu.answer(next, "next");
        },
        [](QmpClient& client) -> asio::awaitable<void> {
            EXPECT_TRUE(co_await client.handshake());
            auto first = co_await client.execute("one", {}, milliseconds(20));
            EXPECT_EQ(first.error().code, ErrorCode::kTimeout);
            auto second = co_await client.execute("two");
            EXPECT_EQ(second->as_string(), "next");
        });
}

class QmpGarbage : public testing::TestWithParam<const char*> {};

TEST_P(QmpGarbage, DropsTheConnection) {
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            qemu.hear();
            qemu.say(GetParam());
            qemu.hear();
        },
        [](QmpClient& client) -> asio::awaitable<void> {
            EXPECT_TRUE(co_await client.handshake());
            auto answer = co_await client.execute("query-status");
            EXPECT_EQ(answer.error().code, ErrorCode::kProtocol);
        });
}

INSTANTIATE_TEST_SUITE_P(Lines, QmpGarbage,
                         testing::Values("HTTP/1.1 400 Bad Request", "", "[]", "{}", R"({"event": 3})",
                                         R"({"return": 1})", R"({"return": 1, "id": "x"})", "\x01\x02\xff",
                                         R"({"return": )"));

TEST(QmpClient, EndlessLineDropsTheConnection) {
    converse(
        [](FakeQemu& qemu) {
            qemu.greet();
            qemu.hear();
            const std::string piece(1 << 20, 'x');
            for (int i = 0; i < 9; ++i) qemu.say_piece(piece);
        },
        [](QmpClient& client) -> asio::awaitable<void> {
            EXPECT_TRUE(co_await client.handshake());
            auto answer = co_await client.execute("query-status");
            EXPECT_EQ(answer.error().code, ErrorCode::kProtocol);
        });
}

}  // namespace
}  // namespace memtide::emul
