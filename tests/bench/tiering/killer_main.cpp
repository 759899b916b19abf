// memtide-tiering-killer: starts an agent and kills it with SIGKILL, again and again, at instants that are
// random: up to 1.5 s after its start, and in each tenth life up to 1.5 s after it has begun to move pages
// (or has not for 10 s after its first window). Prints a JSON line for each life, and one at the end:
//
//   {"life": {"number": 3, "seconds": 0.81, "answered": 0.412, "window": null, "moved": false, "hung":
//   false}}
//   {"killer": {"kills": 100, "hung": 0}}
//
// `answered` is when it first answered on its socket, `window` when it first had a window of looking, both in
// seconds from its start; null when it was killed before. An agent hangs when it does neither within 60 s of
// a life that waits for it, when it ends by itself, or when it is still there 10 s after SIGKILL.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/process/child.h"

namespace memtide::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr double kMostSeconds = 1.5;  // of a life, or after a first window
constexpr unsigned kWaitsEvery = 10;
constexpr std::chrono::seconds kPatience{60};
constexpr double kSecondsForMoves = 10;  // after a first window
constexpr std::chrono::seconds kReapLimit{10};

struct Options {
    std::string agent;
    std::string socket = "/run/memtide/tiering-agent/agent.sock";
    std::string log = "/run/agent.log";
    unsigned kills = 100;
    unsigned seed = 1;
};

struct Life {
    double seconds = 0;
    std::optional<double> answered;
    std::optional<double> window;
    bool moved = false;
    bool hung = false;
};

// Body of the answer to GET /v1/status within a second; nothing when nobody answers.
std::optional<std::string> ask_status(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return std::nullopt;
    const timeval limit{.tv_sec = 1, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    constexpr std::string_view kQuestion =
        "GET /v1/status HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n";
    std::string answer;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        send(fd, kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) == std::ssize(kQuestion)) {
        char buffer[4096];
        for (ssize_t got = 0; (got = recv(fd, buffer, sizeof buffer, 0)) > 0;)
            answer.append(buffer, static_cast<std::size_t>(got));
    }
    close(fd);
    const std::size_t body = answer.find("\r\n\r\n");
    if (!answer.starts_with("HTTP/1.1 200") || body == std::string::npos) return std::nullopt;
    return answer.substr(body + 4);
}

// Of the body of an answer.
struct Status {
    bool had_window = false;
    bool moved = false;
};
Status read_status(const std::string& body) {
    boost::system::error_code error;
    const auto value = boost::json::parse(body, error);
    if (error || !value.is_object()) return {};
    const auto is_positive = [&value](const char* name) {
        const auto* const number = value.as_object().if_contains(name);
        return number != nullptr && number->is_number() && number->to_number<double>() > 0;
    };
    return {.had_window = is_positive("rounds"), .moved = is_positive("promoted") || is_positive("demoted")};
}

class Killer {
  public:
    explicit Killer(Options options) : options_(std::move(options)), random_(options_.seed) {}

    int run() {
        unsigned hung = 0;
        for (unsigned number = 1; number <= options_.kills; ++number) {
            const auto life = live(number % kWaitsEvery == 0);
            if (!life) {
                std::fprintf(stderr, "memtide-tiering-killer: %s\n", life.error().message.c_str());
                return 1;
            }
            if (life->hung) ++hung;
            const auto text = [](std::optional<double> seconds) {
                return seconds ? fmt::format("{:.3f}", *seconds) : std::string("null");
            };
            fmt::print(
                R"({{"life":{{"number":{},"seconds":{:.3f},"answered":{},"window":{},"moved":{},"hung":{}}}}})"
                "\n",
                number, life->seconds, text(life->answered), text(life->window), life->moved, life->hung);
            std::fflush(stdout);
        }
        fmt::print(R"({{"killer":{{"kills":{},"hung":{}}}}})"
                   "\n",
                   options_.kills, hung);
        return 0;
    }

  private:
    void look(Life& life, Clock::time_point began) const {
        const auto body = ask_status(options_.socket);
        if (!body) return;
        const double now = std::chrono::duration<double>(Clock::now() - began).count();
        const Status status = read_status(*body);
        if (!life.answered) life.answered = now;
        if (status.had_window && !life.window) life.window = now;
        life.moved = status.moved;
    }

    Result<Life> live(bool waits) {
        const double instant = std::uniform_real_distribution<double>(0, kMostSeconds)(random_);
        process::Command command;
        command.argv = {"/bin/sh", "-c", "exec " + options_.agent};
        command.standard_output = process::Stream::file(options_.log, false);
        command.standard_error = process::Stream::file(options_.log);
        const auto began = Clock::now();
        auto agent = process::Child::spawn(command);
        if (!agent) return std::unexpected(agent.error());
        const auto since = [began] { return std::chrono::duration<double>(Clock::now() - began).count(); };
        Life life;
        double until = waits ? std::chrono::duration<double>(kPatience).count() : instant;
        bool chosen = false;  // when to kill one that is waited for
        while (since() < until) {
            if (!life.window || (waits && !life.moved)) look(life, began);
            if (waits && !chosen && life.window &&
                (life.moved || since() > *life.window + kSecondsForMoves)) {
                chosen = true;
                until = since() + instant;
            }
            if (agent->try_wait()) {
                life.hung = true;  // it ended by itself
                break;
            }
            std::this_thread::sleep_for(std::min(
                milliseconds(20), milliseconds(static_cast<int>(std::max(0.0, until - since()) * 1000))));
        }
        life.seconds = since();
        if (waits && !life.window) life.hung = true;
        static_cast<void>(agent->kill());
        if (!agent->wait_for(kReapLimit)) life.hung = true;
        return life;
    }

    Options options_;
    std::mt19937 random_;
};

int run(int argc, char** argv) {
    CLI::App app{"Starts an agent and kills it, again and again, at random instants"};
    Options options;
    app.add_option("--agent", options.agent, "Shell command of the agent")->required();
    app.add_option("--socket", options.socket, "Where it answers");
    app.add_option("--log", options.log, "What it says goes there");
    app.add_option("--kills", options.kills, "How often, 100 by default");
    app.add_option("--seed", options.seed, "Of the random instants, 1 by default");
    CLI11_PARSE(app, argc, argv);
    return Killer(options).run();
}

}  // namespace
}  // namespace memtide::bench

int main(int argc, char** argv) { return memtide::bench::run(argc, argv); }
