#pragma once

#include <string>
#include <string_view>

#include "common/diagram/layout.h"

namespace memtide::diagram {

struct Paint {
    std::string fill = "none";
    std::string stroke = "none";
    double width = 1;
    bool dashed = false;
    double opacity = 1;
};

struct TextStyle {
    double size = 11;
    std::string fill = {};
    bool bold = false;
    enum class Anchor { kStart, kMiddle, kEnd } anchor = Anchor::kMiddle;
    std::string halo = {};  // colour of a rim, for text that lines run under; empty: none
};

struct Point {
    double x = 0;
    double y = 0;
};

// Writes shapes one after the other; what comes later lies above. Texts are escaped here and nowhere else.
class SvgWriter {
  public:
    void box(const Box& box, double radius, const Paint& paint);
    void circle(Point centre, double radius, const Paint& paint);
    void text(Point at, std::string_view text, const TextStyle& style);
    // From one point down to another, leaving and arriving upright.
    void curve(Point from, Point to, const Paint& paint);
    // Up from one point, across, and down to another, with round corners.
    void bridge(Point from, Point to, double top, const Paint& paint);
    // What a pointer shows over everything that is written until end_group().
    void begin_group(std::string_view title);
    void end_group() { body_ += "</g>\n"; }

    // The document around it all.
    [[nodiscard]] std::string document(double width, double height, std::string_view title) const;

  private:
    std::string body_;
};

// For text and attributes of XML 1.0: markup is escaped, what no XML may have is made visible.
std::string xml_text(std::string_view text);

}  // namespace memtide::diagram
