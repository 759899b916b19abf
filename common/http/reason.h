#pragma once

#include <string_view>

namespace memtide::http {

// The phrase that goes with a status code (RFC 9110, section 15): 404 -> "Not Found".
std::string_view reason_phrase(unsigned status);

}  // namespace memtide::http
