#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace memtide::cli {

// A table whose notes are cut so that lines fit into `columns`.
std::string render_compositions(const boost::json::array& compositions, std::size_t columns);
// Everything about one: its members, then its steps with their times, then who holds it. A plan, which is
// none yet, has no state and no times, but what was excluded.
std::string render_composition(const boost::json::value& composition);
// What kept which devices out of a choice, a line each; of very many the first ones and how many more there
// are. "" when nothing was.
std::string render_excluded(const boost::json::array& excluded);
// What it is at now, for a progress line: "Onlining, waits for the agent of host0 ...".
std::string render_progress(const boost::json::value& composition);

}  // namespace memtide::cli
