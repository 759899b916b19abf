#pragma once

#include <string>

#include <boost/json/value.hpp>

namespace memtide::cli {

// What a tiering agent says of itself: tiers, targets, what it moved and what that came to.
std::string render_agent_status(const boost::json::value& status);

}  // namespace memtide::cli
