#pragma once

#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

// A look at one member of a value that may be anything, for those who only want to recognise it.
namespace memtide::json {

// nullptr when the value is no object, or has no such member.
inline const boost::json::value* find_member(const boost::json::value& value, std::string_view name) {
    const auto* const object = value.if_object();
    return object == nullptr ? nullptr : object->if_contains(name);
}

// nullptr also when it is no text.
inline const boost::json::string* find_text(const boost::json::value& value, std::string_view name) {
    const auto* const member = find_member(value, name);
    return member == nullptr ? nullptr : member->if_string();
}

inline const boost::json::array* find_list(const boost::json::value& value, std::string_view name) {
    const auto* const member = find_member(value, name);
    return member == nullptr ? nullptr : member->if_array();
}

}  // namespace memtide::json
