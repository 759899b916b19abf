#include "cxl-emul/rack/agent_keeper.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/object.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/no_throw.h"
#include "common/process/child.h"
#include "cxl-emul/rack/messages.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::steady_clock;

namespace {
constexpr auto kFirstDelay = std::chrono::milliseconds(500);
constexpr auto kLongestDelay = std::chrono::milliseconds(10'000);
constexpr auto kHealthyTime = std::chrono::seconds(30);  // an agent that ran this long starts again quickly
}  // namespace

struct AgentKeeper::State : std::enable_shared_from_this<State> {
    State(asio::any_io_executor ex, std::vector<std::string> command, std::shared_ptr<FrameLink> frames)
        : executor(std::move(ex)), argv(std::move(command)), link(std::move(frames)), delay(executor) {}

    void tell(const char* event, const std::string& detail) {
        json::object message;
        message["event"] = event;
        message["detail"] = detail;
        link->send({FrameType::kEvent, 0, serialize_message(message)});
    }
    // Gives how the agent ended.
    asio::awaitable<std::string> run_once();
    asio::awaitable<void> forward_log(std::shared_ptr<asio::posix::stream_descriptor> from);
    asio::awaitable<void> keep();

    asio::any_io_executor executor;
    std::vector<std::string> argv;
    std::shared_ptr<FrameLink> link;
    asio::steady_timer delay;
    std::optional<process::Child> child;
    bool stopped = false;
};

asio::awaitable<void> AgentKeeper::State::forward_log(std::shared_ptr<asio::posix::stream_descriptor> from) {
    auto self = shared_from_this();
    std::array<char, 4096> chunk{};
    for (;;) {
        auto [error, size] = co_await from->async_read_some(asio::buffer(chunk), kNoThrow);
        if (error) co_return;
        link->send({FrameType::kAgentLog, 0, std::string(chunk.data(), size)});
    }
}

asio::awaitable<std::string> AgentKeeper::State::run_once() {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) co_return "no pipe for its log";
    process::Command command;
    command.argv = argv;
    command.standard_output = process::Stream::from_fd(pipe[1]);
    command.standard_error = process::Stream::from_fd(pipe[1]);
    command.new_session = true;
    auto spawned = process::Child::spawn(command);
    ::close(pipe[1]);
    auto log = std::make_shared<asio::posix::stream_descriptor>(executor, pipe[0]);
    if (!spawned) co_return spawned.error().message;
    child.emplace(std::move(*spawned));
    tell("agent-started", argv.front());
    asio::co_spawn(executor, forward_log(log), asio::detached);
    auto exit = co_await child->wait();
    child.reset();
    co_return exit ? exit->describe() : exit.error().message;
}

asio::awaitable<void> AgentKeeper::State::keep() {
    auto self = shared_from_this();
    auto wait = kFirstDelay;
    while (!stopped) {
        const auto begun = steady_clock::now();
        const auto how = co_await run_once();
        if (stopped) co_return;
        tell("agent-ended", how);
        if (steady_clock::now() - begun > kHealthyTime) wait = kFirstDelay;
        delay.expires_after(wait);
        co_await delay.async_wait(kNoThrow);
        wait = std::min(2 * wait, kLongestDelay);
    }
}

AgentKeeper::AgentKeeper(std::shared_ptr<State> state) : state_(std::move(state)) {}
AgentKeeper::~AgentKeeper() { stop(); }

std::shared_ptr<AgentKeeper> AgentKeeper::start(asio::any_io_executor executor, std::vector<std::string> argv,
                                                std::shared_ptr<FrameLink> link) {
    auto state = std::make_shared<State>(executor, std::move(argv), std::move(link));
    asio::co_spawn(executor, state->keep(), asio::detached);
    return std::shared_ptr<AgentKeeper>(new AgentKeeper(std::move(state)));
}

void AgentKeeper::stop() {
    state_->stopped = true;
    state_->delay.cancel();
    if (state_->child) static_cast<void>(state_->child->terminate());
}

}  // namespace memtide::emul
