#include "cli/render/events.h"

#include <algorithm>
#include <vector>

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "cli/render/fields.h"
#include "common/base/table.h"

namespace memtide::cli {

namespace json = boost::json;

std::string render_event(const json::value& event) {
    std::string text = fmt::format("{:>6}  {}  {:<24}", text_of(event, "id"), text_of(event, "time"),
                                   text_of(event, "type"));
    for (const auto* key : {"composition", "host", "switch", "device", "state", "code"})
        if (const std::string value = text_of(event, key); value != "-")
            text += fmt::format(" {}={}", key, value);
    if (const std::string detail = text_of(event, "detail"); detail != "-") text += ": " + detail;
    return text;
}

namespace {

// A step or an event, where it stands in time: all times are written the same way, in UTC.
struct Moment {
    std::string time;
    std::string what;
    std::string part;  // of a step
    std::string took;
    std::string detail;
};

Moment of_step(const json::value& step) {
    const bool running = member_of(step, "duration_ms").is_null();
    return {text_of(step, "started"), "step " + text_of(step, "step"), text_of(step, "part"),
            running ? "running" : fmt::format("{:.1f} ms", real_of(step, "duration_ms")),
            text_of(step, "detail")};
}

Moment of_event(const json::value& event) {
    const std::string state = text_of(event, "state");
    std::string detail = text_of(event, "detail");
    if (const std::string code = text_of(event, "code"); code != "-") detail = code + ": " + detail;
    return {text_of(event, "time"), state == "-" ? text_of(event, "type") : state, "", "", std::move(detail)};
}

}  // namespace

std::string render_history(const json::value& history) {
    std::vector<Moment> moments;
    for (const json::value& event : items_of(history, "items")) moments.push_back(of_event(event));
    for (const json::value& step : items_of(history, "steps")) moments.push_back(of_step(step));
    std::ranges::stable_sort(moments, {}, &Moment::time);
    Table table({"TIME", "WHAT", ">PART", ">TOOK", "DETAIL"});
    for (const Moment& moment : moments)
        table.add({moment.time, moment.what, moment.part, moment.took, moment.detail});
    std::string text = table.text();
    if (!flag_of(history, "complete"))
        text += "its first events are not kept any more; its steps are all here\n";
    return text;
}

}  // namespace memtide::cli
