#include "cli/render/top.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include "cli/render/fields.h"
#include "common/base/table.h"
#include "common/terminal/printable.h"

namespace memtide::cli {

namespace json = boost::json;

namespace {

std::string pressure_of(const json::value& object) {
    const json::value& pressure = member_of(object, "pressure");
    return pressure.is_number() ? fmt::format("{:.1f} %", 100 * real_of(object, "pressure")) : "-";
}

// Of the tier that memory of a target is in: "1.2GiB 37 %".
std::string bytes_in(const json::value& target, const json::value& tiers, const std::string& tier) {
    double all = 0;
    for (const json::value& each : tiers.get_array())
        all += real_of(member_of(target, "bytes"), text_of(each, "name"));
    const std::string size = about_size_of(member_of(target, "bytes"), tier);
    return all > 0 ? fmt::format("{} {:3.0f} %", size, 100 * real_of(member_of(target, "bytes"), tier) / all)
                   : size;
}

}  // namespace

std::string TopView::page(const json::value& status, Time now) {
    Before next{.at = now, .counts = {}, .processor_seconds = real_of(status, "processor_seconds")};
    const double seconds = before_ ? std::chrono::duration<double>(now - before_->at).count() : 0;
    // Nothing when there is no answer before this one, or the agent has begun anew.
    const auto rate = [&](const std::string& name, std::int64_t count) -> std::string {
        next.counts[name] = count;
        if (!before_ || seconds <= 0) return "-";
        const auto old = before_->counts.find(name);
        if (old == before_->counts.end() || count < old->second) return "-";
        return about_size(static_cast<std::uint64_t>(double(count - old->second) / seconds)) + "/s";
    };
    const double processor = next.processor_seconds - (before_ ? before_->processor_seconds : 0);
    std::string text = fmt::format(
        "memtide agent  mode {}  fast hits {:.1f} %{}  agent {} of a processor  pressure {}\n",
        text_of(status, "mode"), 100 * real_of(status, "hit"), flag_of(status, "even") ? " (even)" : "",
        seconds > 0 && processor >= 0 ? fmt::format("{:.1f} %", 100 * processor / seconds) : "-",
        pressure_of(status));
    text += fmt::format("moved  {} up  {} down  {} for nothing   {} windows of {} ms, {} ms between\n",
                        about_size_of(status, "promoted"), about_size_of(status, "demoted"),
                        about_size_of(status, "wasted"), number_of(status, "rounds"),
                        number_of(status, "window_ms"), number_of(status, "rest_ms"));
    for (const json::value& note : items_of(status, "notes"))
        if (note.is_string()) text += "note  " + printable(std::string_view(note.get_string())) + "\n";
    const json::value tiers(items_of(status, "tiers"));
    Table room({"TIER", ">CAPACITY", ">FREE"});
    std::vector<std::string> headings{"TARGET", ">PROCESSES"};
    for (const json::value& tier : tiers.get_array()) {
        room.add({text_of(tier, "name"), about_size_of(tier, "capacity"), about_size_of(tier, "free")});
        headings.push_back(">" + text_of(tier, "name"));
    }
    headings.insert(headings.end(), {">UP", ">DOWN", ">PRESSURE"});
    Table targets(headings);
    for (const json::value& target : items_of(status, "targets")) {
        const std::string name = text_of(target, "name");
        std::vector<std::string> cells{name, text_of(target, "processes")};
        for (const json::value& tier : tiers.get_array())
            cells.push_back(bytes_in(target, tiers, text_of(tier, "name")));
        cells.push_back(rate(name + " up", number_of(target, "promoted")));
        cells.push_back(rate(name + " down", number_of(target, "demoted")));
        cells.push_back(pressure_of(target));
        targets.add(std::move(cells));
    }
    before_ = std::move(next);
    return text + "\n" + room.text() + "\n" + targets.text();
}

std::string render_top(const json::value& status) { return TopView().page(status, {}); }

}  // namespace memtide::cli
