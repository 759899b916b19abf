#pragma once

#include <boost/json/object.hpp>

#include "tiering-agent/balance/balancer.h"

namespace memtide::agent {

// What `memtide agent status` shows; sizes in bytes (docs/tiering.md, "What it tells").
boost::json::object to_json(const BalanceStatus& status);

}  // namespace memtide::agent
