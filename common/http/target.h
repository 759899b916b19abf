#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/http/message.h"

namespace memtide::http {

// Percent-decodes; nothing when a % is not followed by two hexadecimal digits, or when the text would hold a
// NUL. In queries + is a space.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

// Takes a request target apart into path and query: "/path?a=b", "http://host/path", "*" (RFC 9112, 3.2).
// False when it is none. A parameter that is given twice keeps its last value,
// and is named in repeated_parameter.
bool parse_target(std::string_view target, Request& request);

}  // namespace memtide::http
