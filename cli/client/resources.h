#pragma once

#include <boost/json/value.hpp>

namespace memtide::cli {

// Whether an answer is what its name says, by the members that no version of the manager leaves out: another
// server's `{}` must not pass for an empty pool.
using IsResource = bool (*)(const boost::json::value&);

bool is_pool(const boost::json::value& answer);
bool is_topology(const boost::json::value& answer);
bool is_named(const boost::json::value& answer);  // a host, a switch, a device
bool is_serial(const boost::json::value& answer);
bool is_composition(const boost::json::value& answer);
// A dry run's answer: a composition that has no id.
bool is_plan(const boost::json::value& answer);
bool is_history(const boost::json::value& answer);
bool is_event(const boost::json::value& answer);
bool is_agent_status(const boost::json::value& answer);
bool is_reload(const boost::json::value& answer);
bool is_generations(const boost::json::value& answer);
bool is_working_sets(const boost::json::value& answer);
bool is_tiering_plan(const boost::json::value& answer);
bool is_explanation(const boost::json::value& answer);
bool is_heat(const boost::json::value& answer);

}  // namespace memtide::cli
