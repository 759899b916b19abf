#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "common/base/hex.h"
#include "common/fmapi/commands.h"
#include "common/fmapi/text/value_names.h"
#include "common/json/json.h"

// Payloads as JSON, from their descriptions: an object with the fields' names. Enumerations are their names
// (their number where they have none), bytes are hexadecimal, bitmaps of ids are lists of ids.
namespace memtide::fmapi {

template <Described T>
boost::json::object to_json(const T& payload);

// Reads a payload; members that are missing keep their defaults. Mistakes are recorded in the object's
// reader.
template <Described T>
T from_json(const json::Object& object);

namespace detail {

template <typename T>
concept ByteList = std::same_as<T, std::vector<std::byte>>;
template <typename T>
concept ByteArray = !std::is_arithmetic_v<T> && requires(T value) {
    std::tuple_size<T>::value;
    { value[0] } -> std::convertible_to<std::uint8_t>;
};
template <typename T>
concept List = requires(T value) { value.push_back(value[0]); } && !ByteList<T>;

template <typename Enum>
std::string known_names() {
    std::string text;
    for (const ValueName& row : kValueNames<Enum>) text += (text.empty() ? "" : ", ") + std::string(row.name);
    return text;
}

template <typename Member>
boost::json::value member_to_json(const Member& value) {
    if constexpr (std::same_as<Member, IdBitmap>) {
        boost::json::array ids;
        for (unsigned id = 0; id < 256; ++id)
            if (value.test(static_cast<std::uint8_t>(id))) ids.push_back(id);
        return ids;
    } else if constexpr (std::same_as<Member, Opcode> || std::same_as<Member, ReturnCode>) {
        return boost::json::string(to_string(value));
    } else if constexpr (std::is_enum_v<Member>) {
        const auto number = static_cast<std::uint64_t>(value);
        for (const ValueName& row : kValueNames<Member>)
            if (row.value == number) return boost::json::string(row.name);
        return number;
    } else if constexpr (std::is_integral_v<Member>) {
        return value;
    } else if constexpr (Described<Member>) {
        return to_json(value);
    } else if constexpr (ByteList<Member> || ByteArray<Member>) {
        return boost::json::string(to_hex(std::as_bytes(std::span(value))));
    } else {
        static_assert(List<Member>);
        boost::json::array list;
        for (const auto& element : value) list.push_back(member_to_json(element));
        return list;
    }
}

template <typename T>
void field_to_json(boost::json::object&, const T&, const Reserved&) {}
template <typename T, typename M>
void field_to_json(boost::json::object& object, const T& value, const Field<T, M>& f) {
    object[f.name] = member_to_json(value.*f.member);
}
template <typename T, typename E, typename C>
void field_to_json(boost::json::object&, const T&, const CountField<T, E, C>&) {}
template <typename T, typename E>
void field_to_json(boost::json::object& object, const T& value, const ListField<T, E>& f) {
    object[f.name] = member_to_json(value.*f.list);
}

std::string number_expected(std::uint64_t largest);
// "42", "0x2a", "256MiB".
std::optional<std::uint64_t> parse_number(std::string_view text);

template <typename Member>
Member integer_from_json(const json::Value& value, std::size_t width) {
    if constexpr (std::signed_integral<Member>) {
        return value.integer<Member>();
    } else {
        const std::uint64_t largest = ~std::uint64_t{0} >> (64 - 8 * width);
        if (!value.is_string()) return static_cast<Member>(value.integer<std::uint64_t>(0, largest));
        const auto number = parse_number(value.string());
        if (!number || *number > largest) value.reject(number_expected(largest));
        return static_cast<Member>(number.value_or(0));
    }
}

inline std::vector<json::Value> elements(const json::Value& value) {
    if (value.is_string() || value.is_number()) return {value};
    return value.list();
}

template <typename Member>
void member_from_json(const json::Value& value, Member& into, std::size_t width) {
    if constexpr (std::same_as<Member, IdBitmap>) {
        for (const json::Value& id : elements(value)) into.set(integer_from_json<std::uint8_t>(id, 1));
    } else if constexpr (std::is_enum_v<Member>) {
        if (!value.is_string()) {
            into = static_cast<Member>(integer_from_json<std::underlying_type_t<Member>>(value, width));
            return;
        }
        const std::string name = value.string();
        const auto& names = kValueNames<Member>;
        const auto row = std::ranges::find(names, name, &ValueName::name);
        if (const auto number = parse_number(name);
            row == names.end() && number && *number >> (8 * width - 1) >> 1 == 0)
            into = static_cast<Member>(*number);
        else if (row == names.end())
            value.reject("must be a number" +
                         (names.empty() ? std::string() : ", or one of " + known_names<Member>()));
        else
            into = static_cast<Member>(row->value);
    } else if constexpr (std::is_integral_v<Member>) {
        into = integer_from_json<Member>(value, width);
    } else if constexpr (Described<Member>) {
        into = from_json<Member>(value.object());
    } else if constexpr (ByteList<Member> || ByteArray<Member>) {
        const auto bytes = parse_hex(value.string(std::size_t{1} << 20));
        if (!bytes)
            value.reject(bytes.error().message);
        else if constexpr (ByteList<Member>)
            into = *bytes;
        else if (bytes->size() > into.size())
            value.reject("must have at most " + std::to_string(into.size()) + " bytes");
        else
            std::ranges::transform(*bytes, into.begin(),
                                   [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
    } else {
        static_assert(List<Member>);
        for (const json::Value& element : elements(value))
            member_from_json(element, into.emplace_back(), member_size<typename Member::value_type>());
    }
}

template <typename T>
void field_from_json(const json::Object&, T&, const Reserved&) {}
template <typename T, typename M>
void field_from_json(const json::Object& object, T& value, const Field<T, M>& f) {
    if (const auto member = object.get(f.name)) member_from_json(*member, value.*f.member, fixed_size(f));
}
template <typename T, typename E, typename C>
void field_from_json(const json::Object&, T&, const CountField<T, E, C>&) {}
template <typename T, typename E>
void field_from_json(const json::Object& object, T& value, const ListField<T, E>& f) {
    const auto member = object.get(f.name);
    if (!member) return;
    (value.*f.list).clear();
    member_from_json(*member, value.*f.list, 0);
}

}  // namespace detail

template <Described T>
boost::json::object to_json(const T& payload) {
    boost::json::object object;
    std::apply([&](const auto&... f) { (detail::field_to_json(object, payload, f), ...); }, T::fields);
    return object;
}

template <Described T>
T from_json(const json::Object& object) {
    T payload{};
    std::apply([&](const auto&... f) { (detail::field_from_json(object, payload, f), ...); }, T::fields);
    return payload;
}

}  // namespace memtide::fmapi
