#pragma once

#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "fabric-manager/engine/manager.h"
#include "fabric-manager/model/fragmentation.h"

// The JSON of every answer. Sizes are integers in bytes, serial numbers texts "0x...", times RFC 3339; what
// does not apply is null, so that the members of an object never change. openapi.json describes each.
namespace memtide::fm {

boost::json::object to_json(const Composition& composition);
boost::json::object to_json(const DesiredState& desired);
boost::json::object to_json(const Event& event);
// `devices`: those of the pool.
boost::json::object to_json(const Pool& pool, const Fragmentation& scattered,
                            const std::map<DeviceId, Device>& devices);
boost::json::object to_json(const Switch& item);
boost::json::object to_json(const TenantStatus& tenant);
boost::json::object to_json(const Device& device);
// The same as text behind what is in `text`, one logical device at a time: a page of devices has thousands of
// them, and the objects for all at once cost more than the text.
void append_json(std::string& text, const Device& device);
// `composed`: what it has in compositions; `connected`: whether its agent has called lately, else when it did
// last.
boost::json::object to_json(const Host& host, Bytes composed, bool connected,
                            std::optional<Time> away_since = {});
boost::json::object to_json(const History& history);
boost::json::array to_json(const std::vector<Exclusion>& excluded);

}  // namespace memtide::fm
