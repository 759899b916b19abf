// draw_heat(): the heat of processes as a picture.
#include <algorithm>
#include <array>

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "cli/render/fields.h"
#include "cli/render/heat.h"
#include "cli/render/heat_rows.h"
#include "common/diagram/palette.h"
#include "common/diagram/svg_writer.h"

namespace memtide::cli {

namespace json = boost::json;

namespace {

using diagram::Box;
using diagram::Paint;
using diagram::SvgWriter;
using diagram::TextStyle;

// Steps are few so that neighbours in time often are one box.
constexpr int kSteps = 12;
constexpr double kCellWidth = 10;
constexpr double kLeast = 24;  // of all rows of one mapping, in height
constexpr double kRowHeight = 4;
constexpr double kGap = 10;  // for addresses that are squeezed
constexpr double kMargin = 24;
constexpr double kAddresses = 150;
constexpr double kTitle = 34;

// From pale to full: orange in the fastest tier, blue elsewhere.
std::string colour_of(HeatRows::Cell cell) {
    const double share = double(cell.touched * kSteps / 100) / kSteps;
    const auto between = [share](int cold, int hot) { return cold + static_cast<int>((hot - cold) * share); };
    return cell.is_slow()
               ? fmt::format("#{:02x}{:02x}{:02x}", between(219, 23), between(234, 37), between(254, 150))
               : fmt::format("#{:02x}{:02x}{:02x}", between(255, 194), between(237, 30), between(213, 10));
}

// One row, equal neighbours as one box.
void draw_row(SvgWriter& svg, const HeatRows::Row& row, double x, double y, double height) {
    for (std::size_t at = 0; at < row.cells.size();) {
        std::size_t end = at + 1;
        const HeatRows::Cell cell = row.cells[at];
        const std::string colour = cell.is_absent() ? "" : colour_of(cell);
        while (end < row.cells.size() && cell.is_absent() == row.cells[end].is_absent() &&
               (cell.is_absent() || colour_of(row.cells[end]) == colour))
            ++end;
        if (!cell.is_absent())
            svg.box({x + kCellWidth * double(at), y, kCellWidth * double(end - at), height}, 0,
                    Paint{.fill = colour});
        at = end;
    }
}

// Answers how far down it came.
double draw_process(SvgWriter& svg, const HeatRows& heat, double y) {
    svg.text({kMargin, y + 14}, heat.title,
             TextStyle{.size = 13, .fill = diagram::kInk, .bold = true, .anchor = TextStyle::Anchor::kStart});
    y += kTitle;
    const double x = kMargin + kAddresses;
    const TextStyle small{.size = 10, .fill = diagram::kFaint, .anchor = TextStyle::Anchor::kStart};
    TextStyle right = small;
    right.anchor = TextStyle::Anchor::kEnd;
    svg.text({x, y - 5}, fmt::format("{:.0f} s ago", heat.oldest_seconds), small);
    svg.text({x + kCellWidth * double(heat.columns), y - 5}, "now", right);
    for (std::size_t first = 0; first < heat.rows.size();) {
        std::size_t last = first + 1;
        while (last < heat.rows.size() && heat.rows[last].begin == heat.rows[last - 1].end) ++last;
        const double height = std::max(kRowHeight, kLeast / double(last - first));
        svg.text({x - 8, y + 10}, fmt::format("{:#x}", heat.rows[first].begin), right);
        svg.text({x - 8, y + 21}, about_size(heat.rows[last - 1].end - heat.rows[first].begin), right);
        const double top = y;
        for (; first < last; ++first, y += height) {
            svg.begin_group(fmt::format("{:#x}-{:#x}", heat.rows[first].begin, heat.rows[first].end));
            draw_row(svg, heat.rows[first], x, y, height);
            svg.end_group();
        }
        svg.box({x, top, kCellWidth * double(heat.columns), y - top}, 0,
                Paint{.stroke = diagram::kLine, .width = 0.5});
        y += kGap;
    }
    return y + kTitle / 2;
}

// What the colours mean.
double draw_legend(SvgWriter& svg, double y) {
    const TextStyle style{.size = 11, .fill = diagram::kInk, .anchor = TextStyle::Anchor::kStart};
    double x = kMargin;
    for (const int slow : {0, 100}) {
        for (int step = 0; step <= kSteps; step += 2)
            svg.box({x + step * 5.0, y, 10, 12}, 0,
                    Paint{.fill = colour_of({.touched = 100 * step / kSteps, .slow = slow})});
        x += kSteps * 5.0 + 18;
        svg.text({x, y + 10},
                 slow == 0 ? "fastest tier" : "slower tiers: untouched to touched in every window", style);
        x += 90;
    }
    return y + 30;
}

}  // namespace

std::string draw_heat(const json::value& heat) {
    SvgWriter svg;
    double y = draw_legend(svg, kMargin);
    double width = 560;
    for (const json::value& process : items_of(heat, "processes")) {
        const HeatRows rows = heat_rows_of(process);
        y = draw_process(svg, rows, y);
        width = std::max(width, 2 * kMargin + kAddresses + kCellWidth * double(rows.columns));
    }
    return svg.document(width, y + kMargin, "Heat of memory by address and time");
}

}  // namespace memtide::cli
