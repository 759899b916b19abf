#include "tiering-agent/policy/glob.h"

#include <limits>
#include <optional>

#include <fmt/format.h>

namespace memtide::agent {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

std::size_t index_of(char one) { return static_cast<unsigned char>(one); }

std::unexpected<Error> refuse(std::string_view pattern, std::string_view what) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\": {}", pattern, what));
}

// The set behind a '[' at `at`, which moves behind its ']'; nothing when it is open or empty.
std::optional<std::bitset<256>> take_set(std::string_view pattern, std::size_t& at) {
    std::bitset<256> set;
    const bool is_negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
    if (is_negated) ++at;
    for (bool is_first = true; at < pattern.size() && (is_first || pattern[at] != ']'); is_first = false) {
        const std::size_t low = index_of(pattern[at++]);
        std::size_t high = low;
        if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
            high = index_of(pattern[at + 1]);
            at += 2;
        }
        for (std::size_t one = low; one <= high; ++one) set.set(one);
    }
    if (at >= pattern.size() || set.none()) return std::nullopt;
    ++at;
    return is_negated ? ~set : set;
}

}  // namespace

Result<Glob> Glob::parse(std::string_view pattern, Of of) {
    if (pattern.empty()) return fail(ErrorCode::kInvalidArgument, "a pattern must not be empty");
    Glob glob;
    glob.text_ = pattern;
    glob.of_ = of;
    Set any;
    any.set();
    Set slash;
    slash.set('/');
    const Set single = of == Of::kPath ? any & ~slash : any;
    for (std::size_t at = 0; at < pattern.size();) {
        const char one = pattern[at++];
        Element element;
        if (one == '*') {
            element.is_star = true;
            element.crosses_slashes = of == Of::kText;
            for (; at < pattern.size() && pattern[at] == '*'; ++at) element.crosses_slashes = true;
        } else if (one == '?') {
            element.set = single;
        } else if (one == '[') {
            const auto set = take_set(pattern, at);
            if (!set)
                return refuse(pattern, "a [ needs its ] with something between; write \\[ for the character");
            element.set = *set & single;
        } else if (one == '\\') {
            if (at == pattern.size()) return refuse(pattern, "nothing follows the \\ at the end");
            element.set.set(index_of(pattern[at++]));
        } else {
            element.set.set(index_of(one));
        }
        glob.elements_.push_back(element);
    }
    return glob;
}

// On a mismatch the last star takes one character more. Earlier ones need not be tried again, except for the
// last one that crosses slashes when the one behind it has come to a slash.
bool Glob::matches(std::string_view text) const {
    struct Star {
        std::size_t element = kNowhere;  // the one behind it
        std::size_t at = 0;              // where its characters end
    };
    Star star;
    Star wide;
    std::size_t element = 0;
    std::size_t at = 0;
    while (true) {
        if (element < elements_.size() && elements_[element].is_star) {
            Star& found = elements_[element].crosses_slashes ? wide : star;
            found = {++element, at};
            if (&found == &wide) star = {};
        } else if (element < elements_.size() && at < text.size() &&
                   elements_[element].set.test(index_of(text[at]))) {
            ++element;
            ++at;
        } else if (element == elements_.size() && at == text.size()) {
            return true;
        } else if (star.element != kNowhere && star.at < text.size() && text[star.at] != '/') {
            at = ++star.at;
            element = star.element;
        } else if (wide.element != kNowhere && wide.at < text.size()) {
            at = ++wide.at;
            element = wide.element;
            star = {};
        } else {
            return false;
        }
    }
}

}  // namespace memtide::agent
