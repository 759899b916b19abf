#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>

#include "common/base/ids.h"
#include "fabric-manager/model/time.h"

namespace memtide::fm {

// Which hosts' agents are there: an agent either has a long poll open, or has called a moment ago. Kept in
// memory only: after a restart every agent is away until it calls.
class AgentContacts {
  public:
    using Clock = std::chrono::steady_clock;
    // An agent that is between two calls for longer than this is away.
    static constexpr std::chrono::seconds kGrace{15};

    // Open for as long as it lives: one long poll of the host's agent.
    class Poll {
      public:
        Poll(AgentContacts& contacts, HostId host);
        ~Poll();
        Poll(const Poll&) = delete;
        Poll& operator=(const Poll&) = delete;

      private:
        AgentContacts& contacts_;
        HostId host_;
    };

    void touch(const HostId& host, Clock::time_point now = Clock::now());
    [[nodiscard]] bool connected(const HostId& host, Clock::time_point now = Clock::now()) const;
    // When it called last, of an agent that is away; nothing of one that is there or has never called.
    [[nodiscard]] std::optional<Time> away_since(const HostId& host,
                                                 Clock::time_point now = Clock::now()) const;
    [[nodiscard]] std::size_t connected_count(Clock::time_point now = Clock::now()) const;

  private:
    struct Contact {
        int open_polls = 0;
        Clock::time_point last;
        Time last_time;  // the same by the wall clock
    };
    std::map<HostId, Contact> contacts_;
};

}  // namespace memtide::fm
