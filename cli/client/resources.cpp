#include "cli/client/resources.h"

#include <string_view>

#include <boost/json/object.hpp>

namespace memtide::cli {
namespace {

namespace json = boost::json;

const json::value* member_in(const json::value& answer, std::string_view key) {
    const auto* const object = answer.if_object();
    return object ? object->if_contains(key) : nullptr;
}
bool has_text(const json::value& answer, std::string_view key) {
    const auto* const member = member_in(answer, key);
    return member && member->is_string() && !member->get_string().empty();
}
bool has_number(const json::value& answer, std::string_view key) {
    const auto* const member = member_in(answer, key);
    return member && (member->is_int64() || member->is_uint64());
}
bool has_list(const json::value& answer, std::string_view key) {
    const auto* const member = member_in(answer, key);
    return member && member->is_array();
}

}  // namespace

bool is_pool(const json::value& answer) {
    return has_number(answer, "capacity") && has_list(answer, "devices");
}
bool is_topology(const json::value& answer) {
    return has_list(answer, "switches") && has_list(answer, "devices") && has_list(answer, "hosts");
}
bool is_named(const json::value& answer) { return has_text(answer, "name"); }
bool is_composition(const json::value& answer) { return has_text(answer, "id") && has_text(answer, "state"); }
bool is_plan(const json::value& answer) { return has_list(answer, "parts") && has_text(answer, "state"); }
bool is_event(const json::value& answer) { return has_number(answer, "id") && has_text(answer, "type"); }

}  // namespace memtide::cli
