#include "cli/render/agent.h"

#include <vector>

#include <boost/json/object.hpp>
#include <fmt/format.h>

#include "cli/render/fields.h"
#include "common/base/table.h"
#include "common/terminal/printable.h"

namespace memtide::cli {

namespace json = boost::json;

namespace {

std::string nodes_of(const json::value& tier) {
    std::string text;
    for (const json::value& node : items_of(tier, "nodes"))
        if (node.is_number())
            text += fmt::format("{}{}", text.empty() ? "" : " ", node.to_number<std::int64_t>());
    return text.empty() ? "-" : text;
}

std::string failures_of(const json::value& status) {
    std::string text;
    if (const auto* const failed = member_of(status, "failed").if_object())
        for (const auto& one : *failed)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                                size_of(member_of(status, "failed"), one.key()), printable(one.key()));
    return text;
}

}  // namespace

std::string render_agent_status(const json::value& status) {
    std::string text;
    const auto line = [&](std::string_view name, const std::string& value) {
        text += fmt::format("{:<12}{}\n", name, value);
    };
    line("mode", text_of(status, "mode"));
    line("sees", text_of(status, "tracker"));
    line("fast hits", flag_of(status, "even")
                          ? fmt::format("about {:.1f} %; no page is surely warmer than others",
                                        100 * real_of(status, "hit"))
                          : fmt::format("about {:.1f} %", 100 * real_of(status, "hit")));
    line("moved", fmt::format("{} up, {} down, {} of it for nothing", size_of(status, "promoted"),
                              size_of(status, "demoted"), size_of(status, "wasted")));
    if (const double threads = real_of(status, "move_threads"); threads > 1)
        line("moves with", fmt::format("{:.0f} threads", threads));
    if (const std::string failed = failures_of(status); !failed.empty()) line("not moved", failed);
    if (const double most = real_of(status, "most_fast"); most > 0 && most < 1)
        line("spread",
             fmt::format(
                 "{:.0f} % of the touches at most shall fall on the fastest tier: it answers in {:.0f} "
                 "ns, the next in {:.0f}",
                 100 * most, real_of(status, "fast_ns"), real_of(status, "slow_ns")));
    for (const json::value& target : items_of(status, "targets"))
        if (const double pace = real_of(target, "pace"); pace > 0 && pace < 1)
            line("held back",
                 fmt::format(
                     "{}: {:.0f} % of the full pace; {}", text_of(target, "name"), 100 * pace,
                     flag_of(target, "pressed") ? "its processes wait for memory" : "memory answers late"));
    for (const json::value& target : items_of(status, "targets"))
        if (const json::value& huge = member_of(target, "huge_pages"); real_of(huge, "split") > 0)
            line("huge pages", fmt::format("{}: {} split, {} made whole again", text_of(target, "name"),
                                           number_of(huge, "split"), number_of(huge, "made_whole")));
    line("looks", fmt::format("{} of {} ms, {} ms between; {:.1f} s of a processor, {} of memory",
                              number_of(status, "rounds"), number_of(status, "window_ms"),
                              number_of(status, "rest_ms"), real_of(status, "processor_seconds"),
                              size_of(status, "heat_bytes")));
    if (const json::value& config = member_of(status, "config"); config.is_object()) {
        line("config", fmt::format("{}, read at {}", text_of(config, "file"), text_of(config, "loaded_at")));
        for (const json::value& key : items_of(config, "needs_restart"))
            if (key.is_string())
                line("",
                     "a change of `" + printable(std::string_view(key.get_string())) + "` needs a restart");
        const json::value& error = member_of(config, "last_error");
        for (const json::value& mistake : items_of(error, "mistakes"))
            if (mistake.is_string())
                line("not read", fmt::format("{} at {}", printable(std::string_view(mistake.get_string())),
                                             text_of(error, "at")));
    }
    for (const json::value& target : items_of(status, "targets"))
        if (const json::value& far = member_of(target, "far"); far.is_object())
            line("far",
                 fmt::format("{}: {} out, {} saved, {} came back of {}; {}: {}", text_of(target, "name"),
                             size_of(far, "out"), size_of(far, "saved"), size_of(far, "came_back"),
                             size_of(far, "sent"), text_of(far, "state"), text_of(far, "why")));
    for (const json::value& note : items_of(status, "notes"))
        if (note.is_string()) line("note", printable(std::string_view(note.get_string())));

    Table tiers({"TIER", "NODES", ">CAPACITY", ">FREE", "WHY"});
    for (const json::value& tier : items_of(status, "tiers"))
        tiers.add({text_of(tier, "name"), nodes_of(tier), size_of(tier, "capacity"), size_of(tier, "free"),
                   text_of(tier, "why")});
    std::vector<std::string> headings{"TARGET", ">PROCESSES"};
    for (const json::value& tier : items_of(status, "tiers")) headings.push_back(">" + text_of(tier, "name"));
    headings.insert(headings.end(), {">UP", ">DOWN"});
    Table targets(headings);
    for (const json::value& target : items_of(status, "targets")) {
        std::vector<std::string> cells{text_of(target, "name"), text_of(target, "processes")};
        for (const json::value& tier : items_of(status, "tiers"))
            cells.push_back(size_of(member_of(target, "bytes"), text_of(tier, "name")));
        cells.push_back(size_of(target, "promoted"));
        cells.push_back(size_of(target, "demoted"));
        targets.add(std::move(cells));
    }
    return text + "\n" + tiers.text() + "\n" + targets.text();
}

}  // namespace memtide::cli
