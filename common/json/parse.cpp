#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <fmt/format.h>

#include "common/base/utf8.h"
#include "common/json/json.h"

namespace memtide::json {
namespace {

namespace bj = boost::json;

// A set of names; most objects have few members, and those are found faster side by side.
class Names {
  public:
    // False when it is there already.
    bool insert(const std::string& name) {
        if (!many_.empty()) return many_.insert(name).second;
        if (std::ranges::find(few_, name) != few_.end()) return false;
        few_.push_back(name);
        if (few_.size() == kFew) many_.insert(few_.begin(), few_.end());
        return true;
    }

  private:
    static constexpr std::size_t kFew = 16;
    std::vector<std::string> few_;
    std::set<std::string> many_;
};

// What the DOM parser of Boost.JSON lets pass, it keeps the last of: a member given twice means that the
// sender and the reader may not agree on what was asked. So the events are taken here.
class Builder {
  public:
    static constexpr std::size_t max_object_size = bj::object::max_size();
    static constexpr std::size_t max_array_size = bj::array::max_size();
    static constexpr std::size_t max_key_size = bj::string::max_size();
    static constexpr std::size_t max_string_size = bj::string::max_size();

    Builder() { stack_.reset(); }
    bj::value release() { return stack_.release(); }
    [[nodiscard]] const std::string& complaint() const { return complaint_; }

    bool on_document_begin(bj::error_code&) { return true; }
    bool on_document_end(bj::error_code&) { return true; }
    bool on_object_begin(bj::error_code&) {
        members_.emplace_back();
        return true;
    }
    bool on_object_end(std::size_t n, bj::error_code&) {
        members_.pop_back();
        stack_.push_object(n);
        return true;
    }
    bool on_array_begin(bj::error_code&) { return true; }
    bool on_array_end(std::size_t n, bj::error_code&) {
        stack_.push_array(n);
        return true;
    }
    bool on_key_part(bj::string_view part, std::size_t, bj::error_code&) {
        key_.append(part.data(), part.size());
        stack_.push_chars(part);
        return true;
    }
    bool on_key(bj::string_view part, std::size_t, bj::error_code& error) {
        key_.append(part.data(), part.size());
        stack_.push_key(part);
        if (!members_.back().insert(key_))
            return refuse(fmt::format("the member \"{}\" is given twice", key_), error);
        key_.clear();
        return true;
    }
    bool on_string_part(bj::string_view part, std::size_t, bj::error_code&) {
        stack_.push_chars(part);
        return true;
    }
    bool on_string(bj::string_view part, std::size_t, bj::error_code&) {
        stack_.push_string(part);
        return true;
    }
    bool on_number_part(bj::string_view, bj::error_code&) { return true; }
    bool on_int64(std::int64_t number, bj::string_view, bj::error_code&) {
        stack_.push_int64(number);
        return true;
    }
    bool on_uint64(std::uint64_t number, bj::string_view, bj::error_code&) {
        stack_.push_uint64(number);
        return true;
    }
    bool on_double(double number, bj::string_view, bj::error_code& error) {
        if (!std::isfinite(number)) return refuse("the number is too large", error);
        stack_.push_double(number);
        return true;
    }
    bool on_bool(bool value, bj::error_code&) {
        stack_.push_bool(value);
        return true;
    }
    bool on_null(bj::error_code&) {
        stack_.push_null();
        return true;
    }
    bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
    bool on_comment(bj::string_view, bj::error_code&) { return true; }

  private:
    bool refuse(std::string complaint, bj::error_code& error) {
        complaint_ = std::move(complaint);
        error = make_error_code(boost::system::errc::invalid_argument);
        return false;
    }

    bj::value_stack stack_;
    std::vector<Names> members_;  // of each object that is open
    std::string key_;
    std::string complaint_;
};

std::string_view explain(const bj::error_code& error) {
    if (error == bj::error::incomplete) return "the text ends too early";
    if (error == bj::error::extra_data) return "there is more text behind the value";
    if (error == bj::error::too_deep) return "arrays and objects are nested too deeply";
    if (error == bj::error::exponent_overflow) return "the number is too large";
    return {};
}

constexpr std::size_t kLongestCharacter = 4;  // bytes

// Where the text ceases to be UTF-8.
std::optional<std::size_t> first_invalid(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = first_code_point(text.substr(at)).size;
        if (size == 0) return at;
        at += size;
    }
    return std::nullopt;
}

std::unexpected<Error> fail_at(std::string_view text, std::size_t offset, std::string_view what) {
    const std::string_view before = text.substr(0, offset);
    std::size_t line = 1;
    std::size_t column = 1;
    for (const char c : before) {
        // Bytes that continue a UTF-8 character do not move the column.
        if (c == '\n') {
            ++line;
            column = 1;
        } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
            ++column;
        }
    }
    return fail(ErrorCode::kInvalidArgument, fmt::format("line {}, column {}: {}", line, column, what));
}

}  // namespace

Result<bj::value> parse(std::string_view text, Limits limits) {
    if (text.size() > limits.bytes)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("the text has {} bytes, more than {}", text.size(), limits.bytes));
    bj::parse_options options;
    options.max_depth = limits.depth;
    bj::basic_parser<Builder> parser(options);
    bj::error_code error;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
    if (!error && used < text.size()) error = bj::error::extra_data;
    if (!error) return parser.handler().release();
    if (const std::string& complaint = parser.handler().complaint(); !complaint.empty())
        return fail_at(text, used, complaint);
    if (const auto wrong = first_invalid(text); wrong && *wrong <= used + kLongestCharacter)
        return fail_at(text, *wrong, "this is not UTF-8");
    if (const auto known = explain(error); !known.empty()) return fail_at(text, used, known);
    return fail_at(text, used, error.message());
}

}  // namespace memtide::json
