#include "cxl-emul/qemu/qmp_client.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "common/base/no_throw.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {
// query-pci of a large topology is some 100 KiB; nothing QEMU says to us is near this.
constexpr std::size_t kLongestLine = 8 << 20;

// A command that waits for its answer; the timer is cancelled when `answer` is set.
struct Waiter {
    explicit Waiter(const asio::any_io_executor& executor) : timer(executor) {}
    asio::steady_timer timer;
    std::optional<Result<json::value>> answer;

    void finish(Result<json::value> result) {
        if (answer) return;
        answer = std::move(result);
        timer.cancel();
    }
};
}  // namespace

struct QmpClient::State : std::enable_shared_from_this<State> {
    State(const asio::any_io_executor& executor, int fd)
        : socket(executor), greeting(std::make_shared<Waiter>(executor)) {
        socket.assign(asio::local::stream_protocol(), fd);
    }

    void fail_all(const Error& why) {
        if (closed) return;
        closed = why;
        boost::system::error_code ignored;
        socket.close(ignored);
        greeting->finish(std::unexpected(why));
        auto waiting = std::exchange(pending, {});
        for (auto& [id, waiter] : waiting) waiter->finish(std::unexpected(why));
        if (close_handler) close_handler(why);
    }

    // Takes in one line of the peer; an error means that it does not speak QMP.
    Result<> take(const json::object& line);
    asio::awaitable<void> read_loop();
    asio::awaitable<void> write_loop();
    void send(std::string line);

    asio::local::stream_protocol::socket socket;
    asio::streambuf input{kLongestLine};
    std::deque<std::string> output;
    bool writing = false;
    std::uint64_t next_id = 1;
    std::map<std::uint64_t, std::shared_ptr<Waiter>> pending;
    std::shared_ptr<Waiter> greeting;
    std::optional<Error> closed;
    EventHandler event_handler;
    CloseHandler close_handler;
};

Result<> QmpClient::State::take(const json::object& line) {
    if (line.contains("QMP")) {
        greeting->finish(json::value(line));
        return {};
    }
    if (const auto* event = line.if_contains("event")) {
        if (!event->is_string()) return fail(ErrorCode::kProtocol, "QMP event without a name");
        const auto* data = line.if_contains("data");
        const json::object none;
        if (event_handler) {
            event_handler(std::string(event->get_string()),
                          data && data->is_object() ? data->get_object() : none);
        }
        return {};
    }
    const auto* answer = line.if_contains("return");
    const auto* error = line.if_contains("error");
    if (!answer && !error) return fail(ErrorCode::kProtocol, "QMP line that is no answer and no event");
    const auto* id = line.if_contains("id");
    if (!id || !id->is_number()) return fail(ErrorCode::kProtocol, "QMP answer without an id");
    boost::system::error_code bad_number;
    const auto waiter = pending.find(id->to_number<std::uint64_t>(bad_number));
    if (bad_number || waiter == pending.end()) return {};  // came after its deadline
    auto who = waiter->second;
    pending.erase(waiter);
    if (answer) {
        who->finish(*answer);
        return {};
    }
    const auto* text = error->is_object() ? error->get_object().if_contains("desc") : nullptr;
    who->finish(fail(ErrorCode::kConflict,
                     text && text->is_string() ? std::string(text->get_string()) : "no reason"));
    return {};
}

asio::awaitable<void> QmpClient::State::read_loop() {
    auto self = shared_from_this();
    for (;;) {
        auto [error, size] = co_await asio::async_read_until(socket, input, '\n', kNoThrow);
        if (error) {
            fail_all(error == asio::error::not_found
                         ? Error{ErrorCode::kProtocol, "QMP line longer than 8 MiB"}
                         : Error{ErrorCode::kUnavailable, "QMP connection closed: " + error.message()});
            co_return;
        }
        const std::string line(asio::buffers_begin(input.data()),
                               asio::buffers_begin(input.data()) + static_cast<std::ptrdiff_t>(size));
        input.consume(size);
        boost::system::error_code bad_json;
        auto value = json::parse(line, bad_json);
        if (bad_json || !value.is_object()) {
            fail_all({ErrorCode::kProtocol, "QMP peer sent something that is not a JSON object"});
            co_return;
        }
        if (auto taken = take(value.get_object()); !taken) {
            fail_all(taken.error());
            co_return;
        }
    }
}

void QmpClient::State::send(std::string line) {
    output.push_back(std::move(line));
    if (writing) return;
    writing = true;
    asio::co_spawn(socket.get_executor(), write_loop(), asio::detached);
}

asio::awaitable<void> QmpClient::State::write_loop() {
    auto self = shared_from_this();
    while (!output.empty() && !closed) {
        const std::string line = std::move(output.front());
        output.pop_front();
        auto [error, size] = co_await asio::async_write(socket, asio::buffer(line), kNoThrow);
        if (error) fail_all({ErrorCode::kUnavailable, "QMP connection closed: " + error.message()});
    }
    writing = false;
}

QmpClient::QmpClient(asio::any_io_executor executor, int connected_socket)
    : state_(std::make_shared<State>(executor, connected_socket)) {}

QmpClient::~QmpClient() {
    state_->event_handler = nullptr;
    state_->close_handler = nullptr;
    close();
}

void QmpClient::on_event(EventHandler handler) { state_->event_handler = std::move(handler); }
void QmpClient::on_close(CloseHandler handler) { state_->close_handler = std::move(handler); }
void QmpClient::close() { state_->fail_all({ErrorCode::kCancelled, "QMP client was closed"}); }

asio::awaitable<Result<>> QmpClient::handshake(std::chrono::milliseconds timeout) {
    auto state = state_;
    asio::co_spawn(state->socket.get_executor(), state->read_loop(), asio::detached);
    if (!state->greeting->answer) {
        state->greeting->timer.expires_after(timeout);
        co_await state->greeting->timer.async_wait(kNoThrow);
    }
    if (!state->greeting->answer) {
        Error why{ErrorCode::kTimeout, "QEMU did not greet on its QMP socket"};
        state->fail_all(why);
        co_return std::unexpected(why);
    }
    if (!*state->greeting->answer) co_return std::unexpected(state->greeting->answer->error());
    auto ready = co_await execute("qmp_capabilities", {}, timeout);
    if (!ready) co_return std::unexpected(ready.error());
    co_return Result<>{};
}

asio::awaitable<Result<json::value>> QmpClient::execute(std::string command, json::object arguments,
                                                        std::chrono::milliseconds timeout) {
    auto state = state_;
    if (state->closed) co_return std::unexpected(Error(*state->closed).with_context("QMP " + command));
    const auto id = state->next_id++;
    json::object request{{"execute", command}, {"id", id}};
    if (!arguments.empty()) request["arguments"] = std::move(arguments);
    auto waiter = std::make_shared<Waiter>(state->socket.get_executor());
    waiter->timer.expires_after(timeout);
    state->pending[id] = waiter;
    state->send(json::serialize(request) + "\n");
    co_await waiter->timer.async_wait(kNoThrow);
    if (!waiter->answer) {
        state->pending.erase(id);
        co_return fail(ErrorCode::kTimeout,
                       fmt::format("QMP {}: no answer within {} ms", command, timeout.count()));
    }
    if (!*waiter->answer)
        co_return std::unexpected(Error(waiter->answer->error()).with_context("QMP " + command));
    co_return std::move(**waiter->answer);
}

asio::awaitable<Result<std::string>> QmpClient::monitor(std::string line) {
    json::object arguments;
    arguments["command-line"] = line;
    auto answer = co_await execute("human-monitor-command", std::move(arguments));
    if (!answer) co_return std::unexpected(answer.error());
    if (!answer->is_string()) co_return fail(ErrorCode::kProtocol, "monitor line " + line + ": no text back");
    co_return std::string(answer->get_string());
}

}  // namespace memtide::emul
