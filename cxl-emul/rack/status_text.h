#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace memtide::emul {

// The status of a rack (Rack::status()) as tables for people; `verbose` adds what is only of interest when
// something is not as expected.
std::string status_text(const boost::json::object& status, bool verbose = false);

// Several racks, one line each.
std::string list_text(const boost::json::array& racks);

// "with KVM" or "without KVM (slower)".
std::string accelerator_text(const boost::json::object& status);

// One line about the hosts on their way up: "host0 ready in 6.1 s, host1 booting".
std::string boot_progress_text(const boost::json::object& status);

}  // namespace memtide::emul
