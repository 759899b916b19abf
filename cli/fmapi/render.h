#pragma once

#include <string>

#include <boost/json/value.hpp>

#include "common/fmapi/text/command_text.h"

namespace memtide::cli {

// A payload or message as people read it: a line a field, lists of structures as tables. `indent` in columns.
std::string render_fields(const boost::json::object& object, std::size_t indent = 0);

// The fields of a payload with their widths and the names of their values, for --help.
std::string render_layout(const std::vector<fmapi::FieldText>& fields, std::size_t indent = 2);

// Every command: opcode, word, name, how it may be treated.
std::string render_commands();

}  // namespace memtide::cli
