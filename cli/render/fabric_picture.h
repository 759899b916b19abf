#pragma once

#include <boost/json/value.hpp>

#include "common/diagram/fabric.h"

namespace memtide::cli {

// What there is to be drawn of a manager's GET /v1/topology.
diagram::Fabric picture_of_topology(const boost::json::value& topology);

}  // namespace memtide::cli
