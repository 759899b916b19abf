#include "common/json/write.h"

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace memtide::json {
namespace {

namespace bj = boost::json;

bool must_be_escaped(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

void append_escaped(std::string& text, char c) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    switch (c) {
        case '"':
            text += "\\\"";
            return;
        case '\\':
            text += "\\\\";
            return;
        case '\n':
            text += "\\n";
            return;
        case '\r':
            text += "\\r";
            return;
        case '\t':
            text += "\\t";
            return;
        default:
            const auto byte = static_cast<unsigned char>(c);
            text.append("\\u00").append({kDigits[byte >> 4], kDigits[byte & 15]});
    }
}

void append_string(std::string& text, std::string_view string) {
    text += '"';
    while (!string.empty()) {
        std::size_t plain = 0;
        while (plain < string.size() && !must_be_escaped(string[plain])) ++plain;
        text += string.substr(0, plain);
        if (plain == string.size()) break;
        append_escaped(text, string[plain]);
        string.remove_prefix(plain + 1);
    }
    text += '"';
}

template <std::integral T>
void append_number(std::string& text, T number) {
    std::array<char, 24> digits;
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

void append_double(std::string& text, double number) {
    if (!std::isfinite(number)) {
        text += "null";
        return;
    }
    std::array<char, 512> digits;  // 1.8e308 has 309 of them, 5e-324 has 326
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed).ptr;
    text.append(digits.data(), end);
}

void put(std::string& text, const bj::value& value);

void put(std::string& text, const bj::array& array) {
    text += '[';
    for (std::size_t i = 0; i < array.size(); ++i) {
        if (i > 0) text += ',';
        put(text, array[i]);
    }
    text += ']';
}

void put(std::string& text, const bj::object& object) {
    text += '{';
    bool first = true;
    for (const auto& [key, member] : object) {
        if (!first) text += ',';
        first = false;
        append_string(text, key);
        text += ':';
        put(text, member);
    }
    text += '}';
}

void put(std::string& text, const bj::value& value) {
    switch (value.kind()) {
        case bj::kind::null:
            text += "null";
            break;
        case bj::kind::bool_:
            text += value.get_bool() ? "true" : "false";
            break;
        case bj::kind::int64:
            append_number(text, value.get_int64());
            break;
        case bj::kind::uint64:
            append_number(text, value.get_uint64());
            break;
        case bj::kind::double_:
            append_double(text, value.get_double());
            break;
        case bj::kind::string:
            append_string(text, value.get_string());
            break;
        case bj::kind::array:
            put(text, value.get_array());
            break;
        case bj::kind::object:
            put(text, value.get_object());
            break;
    }
}

template <typename Value>
std::string written(const Value& value) {
    std::string text;
    put(text, value);
    return text;
}

}  // namespace

std::string write(const bj::value& value) { return written(value); }
std::string write(const bj::object& object) { return written(object); }
std::string write(const bj::array& array) { return written(array); }
void append(std::string& text, const bj::object& object) { put(text, object); }

// --- Writer ---

void Writer::put_comma() {
    if (needs_comma_) text_ += ',';
    needs_comma_ = true;
}

void Writer::put_name(std::string_view name) {
    put_comma();
    append_string(text_, name);
    text_ += ':';
    needs_comma_ = false;
}

void Writer::open(char bracket, char closing) {
    put_comma();
    text_ += bracket;
    closing_ += closing;
    needs_comma_ = false;
}

void Writer::open_object() { open('{', '}'); }
void Writer::open_array() { open('[', ']'); }
void Writer::open_object(std::string_view name) {
    put_name(name);
    open_object();
}
void Writer::open_array(std::string_view name) {
    put_name(name);
    open_array();
}

void Writer::close() {
    text_ += closing_.back();
    closing_.pop_back();
    needs_comma_ = true;
}

void Writer::item(std::string_view string) {
    put_comma();
    append_string(text_, string);
}
void Writer::put_signed(std::int64_t number) {
    put_comma();
    append_number(text_, number);
}
void Writer::put_unsigned(std::uint64_t number) {
    put_comma();
    append_number(text_, number);
}
void Writer::item(double number) {
    put_comma();
    append_double(text_, number);
}
void Writer::put_flag(bool flag) {
    put_comma();
    text_ += flag ? "true" : "false";
}

}  // namespace memtide::json
