#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <boost/json/value.hpp>

namespace memtide::cli {

struct HeatStyle {
    std::optional<std::size_t> columns{};  // of the terminal, with colours; none: plain characters
    std::size_t most_rows = 40;            // of a process; neighbours are drawn as one where there are more
};

// The agent's answer to /v1/heat: addresses downwards, time to the right, gaps between mappings squeezed.
// What is in a slower tier has another colour, or says so in plain text. Whatever the answer holds, nothing
// falls over.
std::string render_heat(const boost::json::value& heat, const HeatStyle& style);
// The same in full, as an SVG document that needs nothing else.
std::string draw_heat(const boost::json::value& heat);

}  // namespace memtide::cli
