#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace memtide::agent {

// A pattern of a whole text: `*` any characters, `?` any one, `[a-z]` and `[!a-z]` one of a set, `\` takes
// the next character as it is. In a path `*`, `?` and sets stop at a slash, and `**` does not. Matching takes
// no recursion, and time in the order of pattern times text. Immutable: thread safe.
class Glob {
  public:
    enum class Of { kText, kPath };
    // kInvalidArgument for an empty pattern, an open or empty set, or a `\` at the end.
    static Result<Glob> parse(std::string_view pattern, Of of);

    [[nodiscard]] bool matches(std::string_view text) const;
    [[nodiscard]] const std::string& text() const { return text_; }
    friend bool operator==(const Glob& a, const Glob& b) { return a.text_ == b.text_ && a.of_ == b.of_; }

  private:
    using Set = std::bitset<256>;
    // One element of the pattern; without a set it stands for any number of characters.
    struct Element {
        Set set{};
        bool is_star = false;
        bool crosses_slashes = false;
    };
    Glob() = default;

    std::string text_;
    Of of_ = Of::kText;
    std::vector<Element> elements_;
};

}  // namespace memtide::agent
