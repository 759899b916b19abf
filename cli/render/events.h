#pragma once

#include <string>

#include <boost/json/value.hpp>

// Events and histories for people; the values are a manager's answers.
namespace memtide::cli {

std::string render_event(const boost::json::value& event);  // one line, its id first, without its end
std::string render_history(const boost::json::value& history);

}  // namespace memtide::cli
