#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "cxl-emul/rack/frame_link.h"

namespace memtide::emul {

// Keeps the tiering agent running in a guest: starts it, sends what it logs to the supervisor (kAgentLog),
// tells of starts and ends (kEvent), and starts it again a moment after it ended.
class AgentKeeper {
  public:
    static std::shared_ptr<AgentKeeper> start(boost::asio::any_io_executor executor,
                                              std::vector<std::string> argv, std::shared_ptr<FrameLink> link);
    ~AgentKeeper();
    // Ends the agent for good.
    void stop();

  private:
    struct State;
    explicit AgentKeeper(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace memtide::emul
