#pragma once

#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "common/base/error.h"

namespace memtide::cli {

// The fields of a request from words such as "port=2", "ports=0,1,2", "length=256MiB", "tag=0a0b",
// "cost.latency_entry=7" and `extents=[{"dpa":0,"length":4096}]`. Numbers are decimal, hexadecimal with 0x,
// or sizes; what is none of them stays a text. kInvalidArgument names the word that is no field, or comes
// twice.
Result<boost::json::object> fields_of_words(const std::vector<std::string>& words);

}  // namespace memtide::cli
