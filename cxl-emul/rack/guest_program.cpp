#include "cxl-emul/rack/guest_program.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "common/base/no_throw.h"
#include "common/process/child.h"

namespace memtide::emul {
namespace asio = boost::asio;

namespace {
// What a program leaves running may hold its pipes open for good; output that comes later than this after its
// end is lost.
constexpr auto kDrainTime = std::chrono::milliseconds(500);
constexpr auto kHangUpTime = std::chrono::seconds(1);

struct Pipe {
    int read_end = -1;
    int write_end = -1;
};

std::optional<Pipe> make_pipe() {
    std::array<int, 2> fds{};
    if (::pipe2(fds.data(), O_CLOEXEC) != 0) return std::nullopt;
    return Pipe{fds[0], fds[1]};
}

void close_all(std::initializer_list<int> fds) {
    for (const int fd : fds) ::close(fd);
}
}  // namespace

struct GuestProgram::State : std::enable_shared_from_this<State> {
    State(asio::any_io_executor ex, std::uint32_t number, Send sender, std::function<void()> end)
        : executor(std::move(ex)),
          stream(number),
          send(std::move(sender)),
          on_end(std::move(end)),
          input(executor),
          output(executor),
          error_output(executor),
          more_input(executor),
          more_credit(executor),
          drained(executor) {
        for (auto* timer : {&more_input, &more_credit, &drained})
            timer->expires_at(asio::steady_timer::time_point::max());
    }

    Result<> launch(ProgramRequest request);
    asio::awaitable<void> run();
    asio::awaitable<void> pump_input();
    asio::awaitable<void> pump_output(asio::posix::stream_descriptor& from, FrameType type);
    void finish(std::uint32_t code) {
        if (std::exchange(finished, true)) return;
        boost::system::error_code ignored;
        for (auto* pipe : {&input, &output, &error_output}) pipe->close(ignored);
        more_input.cancel();
        more_credit.cancel();
        send(number_frame(FrameType::kExit, stream, code));
        if (on_end) on_end();
    }

    asio::any_io_executor executor;
    std::uint32_t stream;
    Send send;
    std::function<void()> on_end;
    std::optional<process::Child> child;
    asio::posix::stream_descriptor input, output, error_output;
    asio::steady_timer more_input, more_credit, drained;  // never expire; cancelled as a wake-up call
    std::string waiting_input;
    bool input_ended = false;
    std::uint64_t credit = kWindow;
    int open_outputs = 0;
    bool finished = false;
};

Result<> GuestProgram::State::launch(ProgramRequest request) {
    auto in = make_pipe();
    auto out = make_pipe();
    auto err = make_pipe();
    if (!in || !out || !err) return fail_errno("pipe", "for the program", errno);
    process::Command command;
    command.argv = std::move(request.argv);
    for (auto& [name, value] : request.environment) command.environment[name] = std::move(value);
    std::error_code error;
    const bool there = std::filesystem::is_directory(request.working_directory, error);
    command.working_directory = there ? request.working_directory : "/";
    command.standard_input = process::Stream::from_fd(in->read_end);
    command.standard_output = process::Stream::from_fd(out->write_end);
    command.standard_error = process::Stream::from_fd(err->write_end);
    command.new_session = true;  // its own process group, for signals
    auto spawned = process::Child::spawn(command);
    close_all({in->read_end, out->write_end, err->write_end});
    input.assign(in->write_end);
    output.assign(out->read_end);
    error_output.assign(err->read_end);
    output.non_blocking(true);
    error_output.non_blocking(true);
    if (!spawned) return std::unexpected(spawned.error());
    child.emplace(std::move(*spawned));
    return {};
}

asio::awaitable<void> GuestProgram::State::run() {
    auto self = shared_from_this();
    auto exit = co_await child->wait();
    if (open_outputs > 0) {
        drained.expires_after(kDrainTime);
        co_await drained.async_wait(kNoThrow);
    }
    finish(exit ? static_cast<std::uint32_t>(exit->shell_code()) : 255U);
}

asio::awaitable<void> GuestProgram::State::pump_input() {
    auto self = shared_from_this();
    while (!finished) {
        if (waiting_input.empty()) {
            if (input_ended) break;
            co_await more_input.async_wait(kNoThrow);
            continue;
        }
        const auto bytes = std::exchange(waiting_input, {});
        auto [error, size] = co_await asio::async_write(input, asio::buffer(bytes), kNoThrow);
        // Credit also for what a program that closed its input did not read: the sender must not wait for it.
        if (!finished) send(credit_frame(stream, static_cast<std::uint32_t>(bytes.size())));
        if (error && error != asio::error::broken_pipe) break;
    }
    boost::system::error_code ignored;
    input.close(ignored);
}

asio::awaitable<void> GuestProgram::State::pump_output(asio::posix::stream_descriptor& from, FrameType type) {
    auto self = shared_from_this();
    std::array<char, kChunk> chunk{};
    while (!finished) {
        if (credit == 0) {
            co_await more_credit.async_wait(kNoThrow);
            continue;
        }
        // Waits first and reads then, so that an output that is silent holds no credit of the other.
        auto [gone] = co_await from.async_wait(asio::posix::stream_descriptor::wait_read, kNoThrow);
        if (gone || finished) break;
        const auto room = std::min<std::uint64_t>(credit, chunk.size());
        if (room == 0) continue;
        boost::system::error_code error;
        const auto size = from.read_some(asio::buffer(chunk, room), error);
        if (error == asio::error::would_block || error == asio::error::interrupted) continue;
        if (error) break;
        credit -= size;
        if (!finished) send({type, stream, std::string(chunk.data(), size)});
    }
    if (--open_outputs == 0) drained.cancel();
}

GuestProgram::GuestProgram(std::shared_ptr<State> state) : state_(std::move(state)) {}

GuestProgram::~GuestProgram() {
    state_->finished = true;
    state_->on_end = nullptr;
}

std::shared_ptr<GuestProgram> GuestProgram::start(asio::any_io_executor executor, std::uint32_t stream,
                                                  ProgramRequest request, Send send,
                                                  std::function<void()> on_end) {
    const auto name = request.argv.empty() ? std::string() : request.argv.front();
    auto state = std::make_shared<State>(executor, stream, std::move(send), std::move(on_end));
    std::shared_ptr<GuestProgram> program(new GuestProgram(state));
    if (auto launched = state->launch(std::move(request)); !launched) {
        state->send({FrameType::kErrorOutput, stream, launched.error().message + "\n"});
        const std::uint32_t code = launched.error().code == ErrorCode::kNotFound ? 127 : 126;
        // Not from here: the caller does not have the program yet.
        asio::post(executor, [state, program, code] { state->finish(code); });
        return program;
    }
    state->open_outputs = 2;
    asio::co_spawn(executor, state->pump_input(), asio::detached);
    asio::co_spawn(executor, state->pump_output(state->output, FrameType::kOutput), asio::detached);
    asio::co_spawn(executor, state->pump_output(state->error_output, FrameType::kErrorOutput),
                   asio::detached);
    asio::co_spawn(executor, state->run(), asio::detached);
    return program;
}

void GuestProgram::take(const Frame& frame) {
    auto& state = *state_;
    switch (frame.type) {
        case FrameType::kInput:
            state.waiting_input += frame.payload;
            state.more_input.cancel();
            break;
        case FrameType::kInputEnd:
            state.input_ended = true;
            state.more_input.cancel();
            break;
        case FrameType::kCredit:
            state.credit += frame_number(frame).value_or(0);
            state.more_credit.cancel();
            break;
        case FrameType::kSignal:
            if (state.child && state.child->running())
                ::kill(-state.child->pid(), static_cast<int>(frame_number(frame).value_or(SIGTERM)));
            break;
        default:
            break;
    }
}

void GuestProgram::abandon() {
    if (!state_->child || !state_->child->running()) return;
    ::kill(-state_->child->pid(), SIGHUP);
    auto timer = std::make_shared<asio::steady_timer>(state_->executor, kHangUpTime);
    timer->async_wait([timer, state = state_](const boost::system::error_code& error) {
        if (!error && state->child->running()) ::kill(-state->child->pid(), SIGKILL);
    });
    // Its output goes nowhere now, and must not block it.
    state_->credit = std::uint64_t{1} << 62;
    state_->more_credit.cancel();
}

}  // namespace memtide::emul
