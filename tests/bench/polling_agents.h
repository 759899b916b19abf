#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace memtide::bench {

// Thousands of agents that wait for their desired state, each over a connection of its own, all in one thread
// (epoll): the load generator must not cost more than what it loads. Throws std::runtime_error when an agent
// is refused or loses its connection.
class PollingAgents {
  public:
    // Agents of host00000, host00001, ...; `port` of the manager on 127.0.0.1.
    PollingAgents(int count, std::uint16_t port);
    ~PollingAgents();
    PollingAgents(const PollingAgents&) = delete;
    PollingAgents& operator=(const PollingAgents&) = delete;

    // Every agent asks once; returns when all are answered.
    void ask();
    // Every agent asks for a revision after the one it has, and returns at once: they wait.
    void start_waiting(std::chrono::seconds timeout);
    // Returns when every agent has been answered `times` more times, asking again each time but the last.
    void await_answers(int times, std::chrono::milliseconds timeout);

  private:
    struct Agent {
        int fd = -1;
        std::string host;
        std::string received;
        std::string revision;
        int left = 0;  // answers that it still waits for
    };
    void send(Agent& agent, const std::string& query);
    void run(std::chrono::milliseconds timeout);
    bool take(Agent& agent);

    int epoll_ = -1;
    std::vector<Agent> agents_;
};

}  // namespace memtide::bench
