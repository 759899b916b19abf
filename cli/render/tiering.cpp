#include "cli/render/tiering.h"

#include <algorithm>
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

std::string words_of(const json::value& object, std::string_view key) {
    std::string text;
    for (const json::value& word : items_of(object, key))
        if (word.is_string())
            text +=
                fmt::format("{}{}", text.empty() ? "" : ", ", printable(std::string_view(word.get_string())));
    return text;
}

std::string time_of(std::int64_t seconds) {
    if (seconds % 3600 == 0 && seconds > 0) return fmt::format("{}h", seconds / 3600);
    if (seconds % 60 == 0 && seconds > 0) return fmt::format("{}min", seconds / 60);
    return fmt::format("{}s", seconds);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::vector<std::int64_t> numbers_of(const json::value& object, std::string_view key) {
    std::vector<std::int64_t> numbers;
    for (const json::value& item : items_of(object, key)) {
        boost::system::error_code failed;
        const auto number = item.to_number<std::int64_t>(failed);
        numbers.push_back(failed ? 0 : number);
    }
    return numbers;
}

// The sets touched within each time, and what is left.
std::vector<std::string> times_of(const json::value& set, const std::vector<std::int64_t>& within) {
    const std::vector<std::int64_t> touched = numbers_of(set, "touched");
    const std::int64_t watched = number_of(set, "watched_seconds");
    std::vector<std::string> cells;
    std::string cold = "-";
    for (std::size_t i = 0; i < within.size(); ++i) {
        if (i >= touched.size() || watched < within[i]) {
            cells.emplace_back("-");
            continue;
        }
        cells.push_back(about_size(static_cast<std::uint64_t>(touched[i])));
        cold = about_size(
            static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_of(set, "looked_at") - touched[i])));
    }
    cells.push_back(cold);
    return cells;
}

using Cells = std::vector<std::string>;

// With columns of its own before those that all of them have.
std::string table_of(const json::value& sets, std::string_view key, Cells headings, std::size_t most,
                     Cells (*own)(const json::value&)) {
    const std::vector<std::int64_t> within = numbers_of(sets, "within_seconds");
    headings.insert(headings.end(), {">RSS", ">LOOKED AT"});
    for (const std::int64_t time : within) headings.push_back(">" + time_of(time));
    headings.insert(headings.end(), {">COLD", ">FAST", ">WATCHED"});
    Table table(headings);
    std::size_t left_out = 0;
    for (const json::value& set : items_of(sets, key)) {
        if (most-- == 0) {
            ++left_out;
            ++most;
            continue;
        }
        Cells cells = own(set);
        cells.push_back(about_size_of(set, "rss"));
        cells.push_back(about_size_of(set, "looked_at"));
        for (std::string& cell : times_of(set, within)) cells.push_back(std::move(cell));
        cells.push_back(about_size_of(set, "looked_at_fast"));
        cells.push_back(time_of(number_of(set, "watched_seconds")));
        table.add(std::move(cells));
    }
    if (table.empty()) return "";
    return "\n" + table.text() +
           (left_out > 0 ? fmt::format("and {} more: --json has them\n", left_out) : std::string());
}

class Lines {
  public:
    void add(std::string_view name, const std::string& value) {
        text_ += fmt::format("{:<12}{}\n", name, value);
    }
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
};

void add_pair(const json::value& pair, Lines& lines) {
    const std::string fast = text_of(pair, "fast");
    const std::string slow = text_of(pair, "slow");
    lines.add("between", fmt::format("{} and {}", fast, slow));
    lines.add("  would move",
              fmt::format(" {} up, {} down{}", about_size_of(pair, "up"), about_size_of(pair, "down"),
                          flag_of(pair, "even") ? "; no page is surely warmer than others" : ""));
    lines.add("  fast hits", fmt::format(" about {} now, {} then", percent(real_of(pair, "hit_before")),
                                         percent(real_of(pair, "hit_after"))));
    lines.add("  room",
              fmt::format(" {} free in {}, of which {} stay so; {} in {}", about_size_of(pair, "fast_free"),
                          fast, about_size_of(pair, "reserve"), about_size_of(pair, "slow_free"), slow));
    if (!member_of(pair, "coldest_up").is_null())
        lines.add("  up goes", fmt::format(" what {} of the windows or more see touched",
                                           percent(real_of(pair, "coldest_up"))));
    if (!member_of(pair, "warmest_down").is_null())
        lines.add("  down goes",
                  fmt::format(" what {} of them or fewer do", percent(real_of(pair, "warmest_down"))));
}

std::string mapping_of(const json::value& mapping) {
    std::string text = fmt::format("{}-{} {} {}", text_of(mapping, "begin"), text_of(mapping, "end"),
                                   text_of(mapping, "permissions"), text_of(mapping, "kind"));
    if (!member_of(mapping, "name").is_null()) text += " " + text_of(mapping, "name");
    if (flag_of(mapping, "locked")) text += ", locked";
    if (flag_of(mapping, "hugetlb")) text += ", hugetlb";
    if (const std::string policy = text_of(mapping, "policy"); policy != "-" && policy != "default")
        text += ", policy " + policy;
    return text;
}

std::string place_of(const json::value& page) {
    if (!flag_of(page, "present")) return "nothing is there: never touched, or swapped out";
    if (member_of(page, "node").is_null()) return "present; its node is not known";
    if (member_of(page, "tier").is_null()) return fmt::format("node {}, in no tier", text_of(page, "node"));
    return fmt::format("node {}, tier {}", text_of(page, "node"), text_of(page, "tier"));
}

void add_heat(const json::value& page, Lines& lines) {
    const json::value& heat = member_of(page, "heat");
    if (!heat.is_object()) return;
    lines.add("heat", fmt::format("touched in {} of the windows, in {} of the last few{}; {} windows",
                                  percent(real_of(heat, "lasting")), percent(real_of(heat, "recent")),
                                  flag_of(heat, "changing") ? ", which counts, since it changes" : "",
                                  number_of(heat, "windows")));
    lines.add("", fmt::format("last seen touched {}{}",
                              number_of(heat, "untouched_seconds") == 0
                                  ? std::string("just now")
                                  : fmt::format("{} ago", time_of(number_of(heat, "untouched_seconds"))),
                              flag_of(heat, "huge") ? "; a huge page, all of it as one" : ""));
    const json::value& rank = member_of(page, "rank");
    if (!rank.is_object()) return;
    lines.add("rank", fmt::format("{} are warmer, {} as warm; {} has {} of {}", about_size_of(rank, "warmer"),
                                  about_size_of(rank, "as_warm"), text_of(rank, "fast"),
                                  about_size_of(rank, "in_fast"), about_size_of(rank, "ranked")));
    const auto share = [&rank](std::string_view key) {
        return member_of(rank, key).is_null() ? std::string("-") : percent(real_of(rank, key));
    };
    lines.add("", fmt::format("it counts {}; the coldest of {} {}, the warmest of {} {}",
                              percent(real_of(heat, "weighted")), text_of(rank, "fast"),
                              share("coldest_fast"), text_of(rank, "slow"), share("warmest_slow")));
}

void add_last_move(const json::value& move, Lines& lines) {
    if (!move.is_object()) return;
    const std::string ago = time_of(number_of(move, "seconds_ago"));
    const std::string rests = flag_of(move, "rests") ? "; it rests" : "";
    if (member_of(move, "error").is_null())
        lines.add("moved",
                  fmt::format("to {} {} ago{}{}", text_of(move, "to"), ago,
                              flag_of(move, "undid_another") ? ", back where it had been" : "", rests));
    else
        lines.add("not moved", fmt::format("{} ago: {}{}", ago, text_of(move, "error"), rests));
}

}  // namespace

std::string render_reload(const json::value& change) {
    const std::string changed = words_of(change, "changed");
    const std::string restart = words_of(change, "needs_restart");
    std::string text =
        fmt::format("{} was read; {}\n", text_of(change, "file"),
                    changed.empty() ? "nothing of tiering has changed" : "changed: " + changed);
    if (!flag_of(change, "in_service"))
        text += "it takes effect as soon as the round that is under way is over\n";
    if (!restart.empty()) text += fmt::format("needs a restart to take effect: {}\n", restart);
    return text;
}

std::string render_working_sets(const json::value& sets) {
    constexpr std::size_t kMostProcesses = 10;
    constexpr std::size_t kMostCgroups = 40;
    std::string text = table_of(
        sets, "targets", {"TARGET", ">PROCESSES"}, SIZE_MAX,
        [](const json::value& set) { return Cells{text_of(set, "name"), text_of(set, "processes")}; });
    text += table_of(sets, "cgroups", {"CGROUP", ">PROCESSES"}, kMostCgroups, [](const json::value& set) {
        return Cells{text_of(set, "name"), text_of(set, "processes")};
    });
    text += table_of(sets, "processes", {"PROCESS", ">PID", "TARGET"}, kMostProcesses,
                     [](const json::value& set) {
                         return Cells{text_of(set, "name"), text_of(set, "pid"), text_of(set, "target")};
                     });
    return text.empty() ? "nothing is watched\n" : text.substr(1);
}

std::string render_generations(const json::value& answer) {
    Table table({"CGROUP", ">NODE", ">AGE", ">ANONYMOUS", ">FILE"});
    for (const json::value& one : items_of(answer, "generations"))
        table.add({text_of(one, "cgroup"), text_of(one, "node"), time_of(number_of(one, "age_ms") / 1000),
                   about_size_of(one, "anonymous"), about_size_of(one, "file")});
    return table.empty() ? "the kernel has no generations for the cgroups of what is watched\n"
                         : table.text();
}

std::string render_tiering_plan(const json::value& plan) {
    Lines lines;
    const std::string mode = text_of(plan, "mode");
    lines.add("mode", mode == "move" ? "move: the next exchange, as it would be now"
                                     : mode + ": nothing is moved; what would be, if it were");
    if (!member_of(plan, "note").is_null()) lines.add("note", text_of(plan, "note"));
    for (const json::value& one : items_of(plan, "left_out"))
        lines.add("left out", fmt::format("{}: {}", text_of(one, "target"), text_of(one, "why")));
    Table targets({"TARGET", "BETWEEN", ">UP", ">DOWN", ">AT MOST"});
    for (const json::value& pair : items_of(plan, "pairs")) {
        add_pair(pair, lines);
        for (const json::value& target : items_of(pair, "targets"))
            targets.add({text_of(target, "name"),
                         fmt::format("{}, {}", text_of(pair, "fast"), text_of(pair, "slow")),
                         about_size_of(target, "up"), about_size_of(target, "down"),
                         number_of(target, "rate_limit") == 0 ? std::string("-")
                                                              : about_size_of(target, "rate_limit") + "/s"});
    }
    return lines.text() + (targets.empty() ? "" : "\n" + targets.text());
}

std::string render_explanation(const json::value& page) {
    Lines lines;
    lines.add("page", fmt::format("{} of process {} ({})", text_of(page, "address"), text_of(page, "pid"),
                                  text_of(page, "comm")));
    lines.add("process", text_of(page, "membership"));
    lines.add("mapping", mapping_of(member_of(page, "mapping")));
    lines.add("is on", place_of(page));
    if (flag_of(page, "may_move")) lines.add("may move", "yes");
    for (const json::value& why : items_of(page, "why_not"))
        if (why.is_string()) lines.add("may move", "no: " + printable(std::string_view(why.get_string())));
    add_heat(page, lines);
    add_last_move(member_of(page, "last_move"), lines);
    lines.add("so", text_of(page, "verdict"));
    return lines.text();
}

}  // namespace memtide::cli
