#include "cli/render/heat.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "cli/render/fields.h"
#include "cli/render/heat_rows.h"

namespace memtide::cli {

namespace json = boost::json;

namespace {

constexpr std::size_t kMostColumns = 1'024;
constexpr std::size_t kMostRows = 4'096;

std::uint64_t address_of(const json::value& row, std::string_view key) {
    const std::string text = text_of(row, key);
    std::uint64_t address = 0;
    if (text.starts_with("0x")) std::from_chars(text.data() + 2, text.data() + text.size(), address, 16);
    return address;
}

int percent_of(const json::array& cells, std::size_t at) {
    if (at >= cells.size() || !cells[at].is_number()) return -1;
    boost::system::error_code failed;
    const auto value = cells[at].to_number<int>(failed);
    return failed ? -1 : std::clamp(value, 0, 100);
}

HeatRows::Cell mean_of(HeatRows::Cell a, HeatRows::Cell b) {
    if (a.is_absent()) return b;
    if (b.is_absent()) return a;
    return {(a.touched + b.touched + 1) / 2, (a.slow + b.slow + 1) / 2};
}

std::string time_ago(double seconds) {
    if (seconds >= 120) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.0f} s", seconds);
}

// From cold to hot, of what is in the fastest tier and of what is not, in the 256 colours of xterm.
constexpr std::array kFastColours{232, 52, 88, 124, 160, 202, 214, 226};
constexpr std::array kSlowColours{17, 18, 19, 20, 27, 33, 39, 51};
// Those who see no colours.
constexpr std::array<std::string_view, 5> kShades{".", ":", "+", "#", "@"};

// Nothing touched is the first one, and only that.
std::size_t level_of(int touched, std::size_t levels) {
    if (touched <= 0) return 0;
    return 1 + std::min(static_cast<std::size_t>(touched) * (levels - 1) / 101, levels - 2);
}

std::string paint(const std::vector<HeatRows::Cell>& cells, bool coloured) {
    std::string text;
    int colour = -1;
    for (const HeatRows::Cell cell : cells) {
        if (!coloured) {
            text += cell.is_absent() ? " " : kShades[level_of(cell.touched, kShades.size())];
            continue;
        }
        const std::size_t level = level_of(cell.touched, kFastColours.size());
        const int next = cell.is_absent() ? -1 : cell.is_slow() ? kSlowColours[level] : kFastColours[level];
        if (next != colour) text += next < 0 ? std::string("\x1b[0m") : fmt::format("\x1b[48;5;{}m", next);
        colour = next;
        text += ' ';
    }
    return colour < 0 ? text : text + "\x1b[0m";
}

// Of the newest column in which there was something.
std::string tier_of(const HeatRows::Row& row) {
    for (auto cell = row.cells.rbegin(); cell != row.cells.rend(); ++cell) {
        if (cell->is_absent()) continue;
        if (cell->slow == 0) return "fast";
        return cell->slow == 100 ? "slow" : fmt::format("{} % slow", cell->slow);
    }
    return "";
}

constexpr std::string_view kRowFormat = "{:<14} {:>6} {:<9} {}\n";

std::string render_process(HeatRows heat, const HeatStyle& style) {
    std::string text = heat.title + "\n";
    if (heat.rows.empty() || heat.columns == 0) return text + "no column of time is complete yet\n";
    squeeze(heat, style.most_rows);
    constexpr std::size_t kBefore = 32;
    const std::size_t width = style.columns && *style.columns > kBefore + 8 ? *style.columns - kBefore : 64;
    std::uint64_t end = heat.rows.front().begin;
    text += fmt::format(kRowFormat, "ADDRESS", "SIZE", "TIER",
                        fmt::format("{} ago ... now", time_ago(heat.oldest_seconds)));
    for (HeatRows::Row& row : heat.rows) {
        if (row.begin > end) text += fmt::format("{:<14} {:>6}\n", "...", about_size(row.begin - end));
        end = row.end;
        if (row.cells.size() > width)
            row.cells.erase(row.cells.begin(), row.cells.end() - static_cast<std::ptrdiff_t>(width));
        text += fmt::format(kRowFormat, fmt::format("{:#x}", row.begin), about_size(row.end - row.begin),
                            tier_of(row), paint(row.cells, style.columns.has_value()));
    }
    return text;
}

}  // namespace

HeatRows heat_rows_of(const json::value& process) {
    HeatRows heat;
    heat.title = fmt::format("{} (process {}), target {}", text_of(process, "comm"), text_of(process, "pid"),
                             text_of(process, "target"));
    const json::array& columns = items_of(process, "columns_seconds_ago");
    heat.columns = std::min(columns.size(), kMostColumns);
    boost::system::error_code failed;
    if (heat.columns > 0) heat.oldest_seconds = columns.front().to_number<double>(failed);
    for (const json::value& row : items_of(process, "rows")) {
        HeatRows::Row one{.begin = address_of(row, "begin"), .end = address_of(row, "end")};
        if (one.end <= one.begin || heat.rows.size() >= kMostRows) continue;
        if (!heat.rows.empty() && one.begin < heat.rows.back().end) continue;
        for (std::size_t i = 0; i < heat.columns; ++i)
            one.cells.push_back(
                {percent_of(items_of(row, "touched"), i), std::max(0, percent_of(items_of(row, "slow"), i))});
        heat.rows.push_back(std::move(one));
    }
    return heat;
}

namespace {

// Each second one into the one before it, where both lie next to each other, or wherever they lie.
std::vector<HeatRows::Row> in_pairs(const std::vector<HeatRows::Row>& rows, bool across_gaps) {
    std::vector<HeatRows::Row> fewer;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        HeatRows::Row& row = fewer.emplace_back(rows[i]);
        if (i + 1 == rows.size() || (!across_gaps && row.end != rows[i + 1].begin)) continue;
        const HeatRows::Row& next = rows[++i];
        row.end = next.end;
        for (std::size_t at = 0; at < row.cells.size(); ++at)
            row.cells[at] = mean_of(row.cells[at], next.cells[at]);
    }
    return fewer;
}

}  // namespace

void squeeze(HeatRows& heat, std::size_t most_rows) {
    while (heat.rows.size() > std::max<std::size_t>(most_rows, 1)) {
        auto fewer = in_pairs(heat.rows, false);
        if (fewer.size() == heat.rows.size()) fewer = in_pairs(heat.rows, true);
        heat.rows = std::move(fewer);
    }
}

std::string render_heat(const json::value& heat, const HeatStyle& style) {
    std::string text;
    for (const json::value& process : items_of(heat, "processes"))
        text += (text.empty() ? "" : "\n") + render_process(heat_rows_of(process), style);
    if (text.empty()) return "nothing is watched\n";
    if (!style.columns)
        return text + "\n. untouched, : + # @ in more and more of the windows; blank: nothing was there\n";
    return text + fmt::format("\n{} fastest tier, {} slower: untouched to touched in every window\n",
                              paint({{0, 0}, {30, 0}, {60, 0}, {100, 0}}, true),
                              paint({{0, 100}, {30, 100}, {60, 100}, {100, 100}}, true));
}

}  // namespace memtide::cli
