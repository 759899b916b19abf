#pragma once

#include <string>

#include <boost/json/value.hpp>

// Answers of the tiering agent, for people. Whatever the answer holds, nothing falls over.
namespace memtide::cli {

std::string render_reload(const boost::json::value& change);
std::string render_generations(const boost::json::value& answer);
std::string render_working_sets(const boost::json::value& sets);
std::string render_tiering_plan(const boost::json::value& plan);
std::string render_explanation(const boost::json::value& explanation);

}  // namespace memtide::cli
