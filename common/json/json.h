#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/fwd.hpp>
#include <boost/json/value.hpp>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"

// JSON that comes from elsewhere: REST bodies, agent reports, answers of a manager, QMP. Values are
// Boost.JSON's.
namespace memtide::json {

struct Limits {
    std::size_t bytes = 1 << 20;
    std::size_t depth = 32;  // of arrays and objects within each other
};

// Parses one JSON text (RFC 8259). kInvalidArgument with "line L, column C: what is wrong" when it is not
// JSON, is larger or deeper than the limits, has a member twice, or a number that no double can hold.
// Thread safe.
Result<boost::json::value> parse(std::string_view text, Limits limits = {});

class Object;
class Value;

// Reads a parsed value into typed ones. Mistakes do not stop the reading: every accessor records
// "$.compositions[3].size: must be ..." and returns a default, so that check() reports all of them at once.
// Keeps a reference to the value. Not thread safe.
class Reader {
  public:
    explicit Reader(const boost::json::value& value);
    Reader(boost::json::value&&) = delete;  // would dangle

    // The whole; `$` in paths. root().object() for the usual case.
    [[nodiscard]] Value root() const;

    enum class Unknown { kIgnored, kRefused };
    // Call when everything was read: kInvalidArgument with each mistake recorded, joined by "; ". With
    // kRefused also each member that nobody asked for, with the nearest known name as a hint.
    [[nodiscard]] Result<> check(Unknown unknown) const;

  private:
    struct State;
    std::shared_ptr<State> state_;
    friend class Object;
    friend class Value;
};

// One value somewhere in the text.
class Value {
  public:
    [[nodiscard]] std::string string(std::size_t max_length = 4096) const;  // bytes of UTF-8
    [[nodiscard]] std::string name() const;  // a string that check_name accepts
    [[nodiscard]] bool boolean() const;
    // 1.0 and 1e3 are integers, 1.5 is not.
    template <std::integral T>
    [[nodiscard]] T integer(T min = std::numeric_limits<T>::min(),
                            T max = std::numeric_limits<T>::max()) const {
        if constexpr (std::signed_integral<T>)
            return static_cast<T>(signed_integer(min, max));
        else
            return static_cast<T>(unsigned_integer(min, max));
    }
    [[nodiscard]] double number() const;
    [[nodiscard]] Bytes bytes() const;          // an integer, or text as parse_bytes reads it
    [[nodiscard]] SerialNumber serial() const;  // text as parse_serial reads it
    // One of `choices`; the first one when it is none of them.
    [[nodiscard]] std::string one_of(std::initializer_list<std::string_view> choices) const;
    [[nodiscard]] Object object() const;
    [[nodiscard]] std::vector<Value> list(std::size_t max_items = 65536) const;

    [[nodiscard]] bool is_null() const;
    [[nodiscard]] bool is_string() const;
    [[nodiscard]] bool is_number() const;
    [[nodiscard]] bool is_object() const;
    [[nodiscard]] bool is_list() const;
    // An integer or other number below zero, or text that is one: for a problem code of its own.
    [[nodiscard]] bool is_negative() const;

    // Records that this value is wrong: its path, ": ", and the message ("must be ...").
    void reject(std::string_view message) const;
    [[nodiscard]] const std::string& path() const { return path_; }
    // As parsed; null when absent.
    [[nodiscard]] const boost::json::value& raw() const;

  private:
    Value(std::shared_ptr<Reader::State> state, const boost::json::value* value, std::string path);
    [[nodiscard]] std::int64_t signed_integer(std::int64_t min, std::int64_t max) const;
    [[nodiscard]] std::uint64_t unsigned_integer(std::uint64_t min, std::uint64_t max) const;

    std::shared_ptr<Reader::State> state_;
    const boost::json::value* value_;  // nullptr: absent, its absence is recorded already
    std::string path_;
    friend class Object;
    friend class Reader;
};

// An object whose members are asked for by name. Asking makes a name known, present or not.
class Object {
  public:
    // The member, or nothing when it is absent or null.
    [[nodiscard]] std::optional<Value> get(std::string_view name) const;
    // The member; when it is absent or null, records "is missing" and returns a value that gives defaults.
    [[nodiscard]] Value require(std::string_view name) const;
    // Whether the member is there, be it null.
    [[nodiscard]] bool has(std::string_view name) const;
    // Every member, for objects whose names are data; all become known.
    [[nodiscard]] std::vector<std::pair<std::string, Value>> entries() const;
    [[nodiscard]] const std::string& path() const { return self_.path(); }
    void reject(std::string_view message) const { self_.reject(message); }

  private:
    explicit Object(Value self);
    Value self_;
    friend class Value;
};

}  // namespace memtide::json
