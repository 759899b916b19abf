#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace memtide::json {

// JSON text on one line. Numbers are plain decimals ("1.5", "0.00025"), the shortest that read back as the
// same double: Boost.JSON's own "1.5E0" puzzles people, and some programs. What is no number (infinity) is
// null. Strings are expected to be UTF-8. Thread safe.
std::string write(const boost::json::value& value);
std::string write(const boost::json::object& object);
std::string write(const boost::json::array& array);
// The same behind what is in `text`, for long texts that are written piece by piece.
void append(std::string& text, const boost::json::object& object);

// The same text without a tree of values, for what is written so often that building the tree would be most
// of the work. Whoever calls it sees to it that names are given in objects only, and once. Not thread safe.
class Writer {
  public:
    // Writes behind what is in `text`, which outlives it.
    explicit Writer(std::string& text) : text_(text) {}

    void open_object();
    void open_object(std::string_view name);
    void open_array(std::string_view name);
    void open_array();
    void close();  // the one opened last
    void item(std::string_view string);
    void item(const char* string) { item(std::string_view(string)); }
    void item(double number);
    void item(std::integral auto number) {
        if constexpr (std::same_as<decltype(number), bool>)
            put_flag(number);
        else if constexpr (std::signed_integral<decltype(number)>)
            put_signed(number);
        else
            put_unsigned(number);
    }
    void member(std::string_view name, const auto& value) {
        put_name(name);
        item(value);
    }

  private:
    void open(char bracket, char closing);
    void put_name(std::string_view name);
    void put_comma();
    void put_flag(bool flag);
    void put_signed(std::int64_t number);
    void put_unsigned(std::uint64_t number);

    std::string& text_;
    std::string closing_;  // brackets that are open
    bool needs_comma_ = false;
};

}  // namespace memtide::json
