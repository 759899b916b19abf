#pragma once

#include <boost/json/object.hpp>

#include "tiering-agent/balance/inspector.h"

namespace memtide::agent {

// What the agent answers at its socket; sizes in bytes, times in seconds, shares from 0 to 1
// (docs/tiering.md, "What it tells").
boost::json::object to_json(const WorkingSets& sets);
boost::json::object to_json(const PlanPreview& plan);
boost::json::object to_json(const Explanation& explanation);
boost::json::object to_json(const HeatPicture& picture);

}  // namespace memtide::agent
