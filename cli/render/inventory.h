#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace memtide::cli {

// Answers of the inventory routes as tables for people.
std::string render_pool(const boost::json::value& pool);
std::string render_hosts(const boost::json::array& hosts);
std::string render_switches(const boost::json::array& switches);
std::string render_devices(const boost::json::array& devices);
std::string render_tenants(const boost::json::array& tenants);
std::string render_topology(const boost::json::value& topology);

}  // namespace memtide::cli
