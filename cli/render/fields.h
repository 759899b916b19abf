#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace memtide::cli {

// Members of a JSON answer as people read them. A member that is absent, null or of another type gives "-"
// (or 0, false): a newer or older manager must not break the tables. Texts come from whoever wrote them, and
// none may steer the reader's terminal: all are printable().
std::string text_of(const boost::json::value& object, std::string_view key);
std::string size_of(const boost::json::value& object, std::string_view key);  // "256MiB"
// "1.2GiB": for people who compare sizes that are nobody's exact wish.
std::string about_size_of(const boost::json::value& object, std::string_view key);
std::string about_size(std::uint64_t bytes);
std::int64_t number_of(const boost::json::value& object, std::string_view key);
double real_of(const boost::json::value& object, std::string_view key);
bool flag_of(const boost::json::value& object, std::string_view key);
const boost::json::array& items_of(const boost::json::value& object, std::string_view key);
// The member itself; a null value when it is absent.
const boost::json::value& member_of(const boost::json::value& object, std::string_view key);

}  // namespace memtide::cli
