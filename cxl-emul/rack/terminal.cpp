#include "cxl-emul/rack/terminal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "cxl-emul/rack/messages.h"

namespace memtide::emul {
namespace {

constexpr std::uint32_t kStream = 1;
constexpr unsigned kPatienceSeconds = 5;  // that a command has after SIGTERM
constexpr char kLeave = 0x1d;             // Ctrl-]

// Write end of the pipe through which the signal handler wakes the loop up.
int signal_pipe = -1;

extern "C" void note_signal(int number) {
    const auto byte = static_cast<unsigned char>(number);
    [[maybe_unused]] const auto written = ::write(signal_pipe, &byte, 1);
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            pollfd wait{fd, POLLOUT, 0};
            ::poll(&wait, 1, -1);
            continue;
        }
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

// One `rack exec`: frames, standard input and signals in one poll loop.
class GuestCommand {
  public:
    GuestCommand(ControlClient client, bool with_input)
        : client_(std::move(client)), input_open_(with_input) {}

    Result<int> run(const boost::json::object& exec_request) {
        auto sent = client_.send(request(kStream, exec_request));
        if (sent && !input_open_) sent = client_.send({FrameType::kInputEnd, kStream, {}});
        if (!sent) return last_words(sent.error());
        catch_signals();
        while (!code_) {
            const bool may_read = input_open_ && credit_ > 0;
            std::array<pollfd, 3> wait{{{client_.descriptor(), POLLIN, 0},
                                        {signals_[0], POLLIN, 0},
                                        {may_read ? STDIN_FILENO : -1, POLLIN, 0}}};
            if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR)
                return fail_errno("poll", "the rack's supervisor", errno);
            Result<> done;
            if (wait[1].revents != 0) done = forward_signal();
            if (done && wait[2].revents != 0) done = read_input();
            if (done && wait[0].revents != 0) done = take_frames();
            if (!done) return last_words(done.error());
        }
        return *code_;
    }

  private:
    // A supervisor that takes no more has often said why.
    Result<int> last_words(const Error& error) {
        const auto said = take_frames();
        if (code_) return *code_;
        return std::unexpected(said ? error : said.error());
    }

    void catch_signals() {
        if (::pipe2(signals_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
        signal_pipe = signals_[1];
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(number, note_signal);
        std::signal(SIGALRM, note_signal);
        std::signal(SIGPIPE, SIG_IGN);
    }

    Result<> forward_signal() {
        unsigned char number = 0;
        if (::read(signals_[0], &number, 1) != 1) return {};
        if (number == SIGALRM) code_ = 128 + SIGTERM;
        if (++signals_seen_ > 2) code_ = 128 + number;
        // Whoever wants us gone does not wait for a command that hangs; an interrupt is the command's own
        // affair.
        if (number == SIGTERM || number == SIGHUP) ::alarm(kPatienceSeconds);
        if (code_) return {};
        return client_.send(number_frame(FrameType::kSignal, kStream, number));
    }

    Result<> read_input() {
        std::array<char, kChunk> chunk{};
        const auto n = ::read(STDIN_FILENO, chunk.data(), std::min<std::size_t>(chunk.size(), credit_));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return {};
        if (n <= 0) {
            input_open_ = false;
            return client_.send({FrameType::kInputEnd, kStream, {}});
        }
        credit_ -= static_cast<std::uint32_t>(n);
        return client_.send(
            {FrameType::kInput, kStream, std::string(chunk.data(), static_cast<std::size_t>(n))});
    }

    Result<> take_frames() {
        for (;;) {
            auto frame = client_.receive_if_there();
            if (!frame) return std::unexpected(frame.error());
            if (!*frame) return {};
            auto taken = take(**frame);
            if (!taken || code_) return taken;
        }
    }

    Result<> take(const Frame& frame) {
        switch (frame.type) {
            case FrameType::kOutput:
            case FrameType::kErrorOutput: {
                const int fd = frame.type == FrameType::kOutput ? STDOUT_FILENO : STDERR_FILENO;
                if (!write_all(fd, frame.payload) && fd == STDOUT_FILENO) {
                    code_ = 128 + SIGPIPE;  // as for a local command whose reader is gone
                    return {};
                }
                return client_.send(credit_frame(kStream, static_cast<std::uint32_t>(frame.payload.size())));
            }
            case FrameType::kCredit:
                credit_ += frame_number(frame).value_or(0);
                return {};
            case FrameType::kExit:
                code_ = static_cast<int>(frame_number(frame).value_or(255));
                return {};
            case FrameType::kReply: {
                auto message = read_reply(frame);
                return message ? Result<>{} : std::unexpected(message.error());
            }
            default:
                return {};
        }
    }

    ControlClient client_;
    bool input_open_;
    std::uint32_t credit_ = kWindow;
    std::array<int, 2> signals_{-1, -1};
    int signals_seen_ = 0;
    std::optional<int> code_;
};

// Puts a terminal in raw mode while it lives.
class RawTerminal {
  public:
    RawTerminal() {
        if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
        termios raw = before_;
        ::cfmakeraw(&raw);
        active_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
    ~RawTerminal() {
        if (active_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    RawTerminal(const RawTerminal&) = delete;
    RawTerminal& operator=(const RawTerminal&) = delete;

  private:
    termios before_{};
    bool active_ = false;
};

// Writes out what has come; false when nobody reads it any more.
Result<bool> show_console(ControlClient& client) {
    for (;;) {
        auto frame = client.receive_if_there();
        if (!frame) return std::unexpected(frame.error());
        if (!*frame) return true;
        if ((*frame)->type == FrameType::kReply) {
            auto refused = read_reply(**frame);
            if (!refused) return std::unexpected(refused.error());
        }
        if ((*frame)->type == FrameType::kOutput && !write_all(STDOUT_FILENO, (*frame)->payload))
            return false;
    }
}

// False when the user wants to leave, or there is no more input.
bool type_input(ControlClient& client) {
    std::array<char, 1024> chunk{};
    const auto n = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    std::string bytes(chunk.data(), static_cast<std::size_t>(n));
    const auto leave = bytes.find(kLeave);
    bytes = bytes.substr(0, leave);
    if (!bytes.empty() && !client.send({FrameType::kInput, kStream, bytes})) return false;
    return leave == std::string::npos;
}

}  // namespace

int run_in_guest(ControlClient client, const boost::json::object& exec_request, bool with_input) {
    auto code = GuestCommand(std::move(client), with_input).run(exec_request);
    if (code) return *code;
    std::cerr << "rack exec: " << code.error().message << '\n';
    return kExecFailed;
}

Result<> attach_console(ControlClient client, const std::string& host) {
    boost::json::object message;
    message["op"] = "console";
    message["host"] = host;
    auto sent = client.send(request(kStream, message));
    if (!sent) return sent;
    std::cerr << fmt::format("[console of {}; Ctrl-] leaves]\n", host);
    const RawTerminal raw;
    for (;;) {
        std::array<pollfd, 2> wait{{{client.descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
        if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR)
            return fail_errno("poll", "console", errno);
        if (wait[0].revents != 0) {
            auto shown = show_console(client);
            if (!shown) return std::unexpected(shown.error());
            if (!*shown) return {};
        }
        if (wait[1].revents != 0 && !type_input(client)) return {};
    }
}

}  // namespace memtide::emul
