#include "tests/bench/polling_agents.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace memtide::bench {
namespace {

[[noreturn]] void give_up(const std::string& what) {
    throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

int connect_to(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) give_up("open a socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) give_up("connect");
    return fd;
}

std::string member(const std::string& json, const std::string& name) {
    const auto at = json.find("\"" + name + "\":");
    if (at == std::string::npos) return {};
    const auto begin = at + name.size() + 3;
    return json.substr(begin, json.find_first_of(",}", begin) - begin);
}

}  // namespace

PollingAgents::PollingAgents(int count, std::uint16_t port) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) give_up("epoll");
    agents_.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        agents_[i].fd = connect_to(port);
        agents_[i].host = fmt::format("host{:05}", i);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = i;
        if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, agents_[i].fd, &event) != 0) give_up("epoll");
    }
}

PollingAgents::~PollingAgents() {
    for (const Agent& agent : agents_)
        if (agent.fd >= 0) ::close(agent.fd);
    if (epoll_ >= 0) ::close(epoll_);
}

// With the header of a usual agent.
void PollingAgents::send(Agent& agent, const std::string& query) {
    const std::string text = fmt::format(
        "GET /v1/hosts/{}/desired{} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
        "User-Agent: memtide-tiering-agent/0.1.0\r\n\r\n",
        agent.host, query);
    if (::send(agent.fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
        give_up("ask for " + agent.host);
}

// Takes in what has come; true when an answer is complete.
bool PollingAgents::take(Agent& agent) {
    std::array<char, 4096> piece;
    const ssize_t got = ::recv(agent.fd, piece.data(), piece.size(), 0);
    if (got <= 0) throw std::runtime_error("the manager closed the connection of " + agent.host);
    agent.received.append(piece.data(), static_cast<std::size_t>(got));
    const auto body = agent.received.find("\r\n\r\n");
    const auto length = agent.received.find("Content-Length: ");
    if (body == std::string::npos || length == std::string::npos) return false;
    const std::size_t size = std::stoul(agent.received.substr(length + 16));
    if (agent.received.size() < body + 4 + size) return false;
    if (!agent.received.starts_with("HTTP/1.1 200 ")) throw std::runtime_error(agent.received);
    agent.revision = member(agent.received.substr(body + 4), "revision");
    agent.received.clear();
    return true;
}

void PollingAgents::run(std::chrono::milliseconds timeout) {
    std::size_t waiting = 0;
    for (const Agent& agent : agents_) waiting += agent.left > 0 ? 1 : 0;
    std::array<epoll_event, 256> events;
    while (waiting > 0) {
        const int count = ::epoll_wait(epoll_, events.data(), events.size(), 300'000);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) give_up("wait for answers");
        for (int i = 0; i < count; ++i) {
            Agent& agent = agents_[events[static_cast<std::size_t>(i)].data.u64];
            if (!take(agent)) continue;
            if (--agent.left == 0)
                --waiting;
            else
                send(agent, fmt::format("?after={}&timeout={}ms", agent.revision, timeout.count()));
        }
    }
}

void PollingAgents::ask() {
    for (Agent& agent : agents_) {
        agent.left = 1;
        send(agent, "");
    }
    run({});
}

void PollingAgents::start_waiting(std::chrono::seconds timeout) {
    for (Agent& agent : agents_)
        send(agent, fmt::format("?after={}&timeout={}s", agent.revision, timeout.count()));
}

void PollingAgents::await_answers(int times, std::chrono::milliseconds timeout) {
    for (Agent& agent : agents_) agent.left = times;
    run(timeout);
}

}  // namespace memtide::bench
