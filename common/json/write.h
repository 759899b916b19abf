#pragma once

#include <string>

#include <boost/json/fwd.hpp>

namespace memtide::json {

// JSON text on one line. Numbers are plain decimals ("1.5", "0.00025"), the shortest that read back as the
// same double: Boost.JSON's own "1.5E0" puzzles people, and some programs. What is no number (infinity) is
// null. Strings are expected to be UTF-8. Thread safe.
std::string write(const boost::json::value& value);
std::string write(const boost::json::object& object);
std::string write(const boost::json::array& array);
// The same behind what is in `text`, for long texts that are written piece by piece.
void append(std::string& text, const boost::json::object& object);

}  // namespace memtide::json
