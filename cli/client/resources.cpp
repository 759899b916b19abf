#include "cli/client/resources.h"

#include <string_view>

#include "common/json/member.h"

namespace memtide::cli {
namespace {

namespace json = boost::json;
using memtide::json::find_list;
using memtide::json::find_member;
using memtide::json::find_text;

bool has_text(const json::value& answer, std::string_view key) {
    const auto* const text = find_text(answer, key);
    return text != nullptr && !text->empty();
}
bool has_number(const json::value& answer, std::string_view key) {
    const auto* const member = find_member(answer, key);
    return member != nullptr && (member->is_int64() || member->is_uint64());
}
bool has_list(const json::value& answer, std::string_view key) { return find_list(answer, key) != nullptr; }

}  // namespace

bool is_pool(const json::value& answer) {
    return has_number(answer, "capacity") && has_list(answer, "devices");
}
bool is_topology(const json::value& answer) {
    return has_list(answer, "switches") && has_list(answer, "devices") && has_list(answer, "hosts");
}
bool is_named(const json::value& answer) { return has_text(answer, "name"); }
bool is_serial(const json::value& answer) { return has_text(answer, "serial"); }
bool is_composition(const json::value& answer) { return has_text(answer, "id") && has_text(answer, "state"); }
bool is_plan(const json::value& answer) { return has_list(answer, "parts") && has_text(answer, "host"); }
bool is_history(const json::value& answer) {
    return has_text(answer, "composition") && has_list(answer, "steps") && has_list(answer, "items");
}
bool is_event(const json::value& answer) { return has_number(answer, "id") && has_text(answer, "type"); }
bool is_agent_status(const json::value& answer) {
    return has_text(answer, "mode") && has_list(answer, "tiers") && has_list(answer, "targets");
}
bool is_reload(const json::value& answer) {
    return has_text(answer, "loaded_at") && has_list(answer, "changed");
}
bool is_generations(const json::value& answer) { return has_list(answer, "generations"); }
bool is_working_sets(const json::value& answer) {
    return has_list(answer, "within_seconds") && has_list(answer, "targets");
}
bool is_tiering_plan(const json::value& answer) {
    return has_text(answer, "mode") && has_list(answer, "pairs");
}
bool is_explanation(const json::value& answer) {
    return has_number(answer, "pid") && has_text(answer, "verdict");
}
bool is_heat(const json::value& answer) { return has_list(answer, "tiers") && has_list(answer, "processes"); }

}  // namespace memtide::cli
