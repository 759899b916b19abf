#pragma once

#include <string_view>

#include <boost/beast/core/string.hpp>

namespace memtide::http {

inline std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace memtide::http
