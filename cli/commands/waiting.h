#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "cli/client/manager_client.h"

namespace memtide::cli {

struct Waiting {
    bool wait = true;
    std::chrono::seconds timeout{300};
};

// What a command waits for, and what it says meanwhile.
struct Goal {
    std::string_view state;
    bool hint_at_force = false;  // --force would help when no agent answers
};

inline constexpr Goal kOnline{"Online"};
inline constexpr Goal kReleased{"Released"};
inline constexpr Goal kReleasedUnforced{"Released", true};

std::string composition_target(std::string_view id);
bool has_ended(const boost::json::value& composition);

// The composition, to be shown: when it waits for an agent that is away, what it waits for says so and since
// when. Whoever may not see hosts sees it as it is.
boost::json::value with_agent(const ManagerClient& manager, boost::json::value composition);

// Follows a composition until it has reached the goal, has ended, or the time is up, whichever is first. A
// manager that is away for a while (it may be restarting) does not end the waiting; SIGINT and SIGTERM end
// the process with a word on how the composition goes on.
Answer<boost::json::value> follow(const ManagerClient& manager, boost::json::value composition, Goal goal,
                                  std::chrono::seconds timeout);

}  // namespace memtide::cli
