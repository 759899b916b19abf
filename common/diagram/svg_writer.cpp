#include "common/diagram/svg_writer.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "common/diagram/palette.h"
#include "common/terminal/printable.h"

namespace memtide::diagram {
namespace {

std::string attributes(const Paint& paint) {
    std::string text = fmt::format(R"( fill="{}" stroke="{}")", paint.fill, paint.stroke);
    if (paint.stroke != "none") text += fmt::format(R"( stroke-width="{:.1f}")", paint.width);
    if (paint.dashed) text += R"( stroke-dasharray="4 3")";
    if (paint.opacity < 1) text += fmt::format(R"( opacity="{:.2f}")", paint.opacity);
    return text;
}

std::string_view name_of(TextStyle::Anchor anchor) {
    switch (anchor) {
        case TextStyle::Anchor::kStart:
            return "start";
        case TextStyle::Anchor::kMiddle:
            return "middle";
        case TextStyle::Anchor::kEnd:
            return "end";
    }
    return "middle";
}

}  // namespace

std::string xml_text(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

void SvgWriter::box(const Box& box, double radius, const Paint& paint) {
    fmt::format_to(std::back_inserter(body_),
                   R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="{:.1f}"{}/>)"
                   "\n",
                   box.x, box.y, box.width, box.height, radius, attributes(paint));
}

void SvgWriter::circle(Point centre, double radius, const Paint& paint) {
    fmt::format_to(std::back_inserter(body_),
                   R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}"{}/>)"
                   "\n",
                   centre.x, centre.y, radius, attributes(paint));
}

void SvgWriter::text(Point at, std::string_view text, const TextStyle& style) {
    if (text.empty()) return;
    const std::string halo =
        style.halo.empty()
            ? std::string()
            : fmt::format(R"( stroke="{}" stroke-width="4" paint-order="stroke" stroke-linejoin="round")",
                          style.halo);
    fmt::format_to(
        std::back_inserter(body_),
        R"(<text x="{:.1f}" y="{:.1f}" font-size="{:.1f}" text-anchor="{}" fill="{}"{}{}>{}</text>)"
        "\n",
        at.x, at.y, style.size, name_of(style.anchor), style.fill.empty() ? kInk : style.fill.c_str(),
        style.bold ? R"( font-weight="600")" : "", halo, xml_text(text));
}

void SvgWriter::curve(Point from, Point to, const Paint& paint) {
    const double middle = (from.y + to.y) / 2;
    fmt::format_to(std::back_inserter(body_),
                   R"(<path d="M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}"{}/>)"
                   "\n",
                   from.x, from.y, from.x, middle, to.x, middle, to.x, to.y, attributes(paint));
}

void SvgWriter::bridge(Point from, Point to, double top, const Paint& paint) {
    if (from.x > to.x) std::swap(from, to);
    const double radius = std::min({8.0, from.y - top, (to.x - from.x) / 2});
    fmt::format_to(std::back_inserter(body_),
                   R"(<path d="M{0:.1f} {1:.1f}V{2:.1f}Q{0:.1f} {3:.1f} {4:.1f} {3:.1f}H{5:.1f})"
                   R"(Q{6:.1f} {3:.1f} {6:.1f} {2:.1f}V{7:.1f}"{8}/>)"
                   "\n",
                   from.x, from.y, top + radius, top, from.x + radius, to.x - radius, to.x, to.y,
                   attributes(paint));
}

void SvgWriter::begin_group(std::string_view title) {
    body_ += "<g><title>" + xml_text(title) + "</title>\n";
}

std::string SvgWriter::document(double width, double height, std::string_view title) const {
    return fmt::format(
        R"svg(<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" role="img" font-family="Inter, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif">
<title>{2}</title>
<defs>
<pattern id="quarantined" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#fee2e2"/><rect width="2" height="6" fill="#f87171"/></pattern>
<pattern id="foreign" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#e2e8f0"/><rect width="2" height="6" fill="#94a3b8"/></pattern>
</defs>
<rect width="{0:.0f}" height="{1:.0f}" fill="{3}"/>
{4}</svg>
)svg",
        std::ceil(width), std::ceil(height), xml_text(title), kPaper, body_);
}

}  // namespace memtide::diagram
