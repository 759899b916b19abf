#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "common/base/error.h"

// How payload structs describe themselves. A payload is a plain struct that lists its fields in wire order:
//
//   struct BindVppbRequest {
//       std::uint8_t vcs = 0;
//       std::uint16_t ld = 0xffff;
//       static constexpr std::string_view kName = "Bind vPPB request";
//       static constexpr std::size_t kWireSize = 3;   // checked at compile time; without lists
//       static constexpr auto fields = std::tuple{field("vcs", &BindVppbRequest::vcs),
//                                                 field("ld", &BindVppbRequest::ld)};
//   };
//
// and codec.h does the rest: encode, decode, sizes, descriptions. Integers are little endian.
namespace memtide::fmapi {

// An integer or enum of `width` bytes (less than its size for the 24-bit ones), a std::array of bytes, or a
// nested struct with fields of its own.
template <typename T, typename Member>
struct Field {
    std::string_view name;
    Member T::* member;
    std::size_t width;   // 0 for nested structs
    bool optional_tail;  // decoding tolerates that the payload ends before it
};

// `count` reserved bytes: written as zeros, ignored when read.
struct Reserved {
    std::size_t count;
};

// The number of elements of a list that follows, as a Count.
template <typename T, typename Element, typename Count>
struct CountField {
    std::string_view name;
    std::vector<Element> T::* list;
};

// The elements of a list: as many as its CountField said, or as `length(payload)` computes. When the payload
// has a member function `void prepare(Element&) const`, it is called with each element before that is
// decoded.
template <typename T, typename Element>
struct ListField {
    std::string_view name;
    std::vector<Element> T::* list;
    std::size_t (T::*length)() const;  // null: a CountField came before
    std::size_t limit;                 // more elements are never written
};

template <typename T, typename Member>
consteval auto field(std::string_view name, Member T::* member) {
    if constexpr (std::is_integral_v<Member> || std::is_enum_v<Member>)
        return Field<T, Member>{name, member, sizeof(Member), false};
    else
        return Field<T, Member>{name, member, 0, false};
}

// A 24-bit integer kept in a uint32_t.
template <typename T>
consteval Field<T, std::uint32_t> field24(std::string_view name, std::uint32_t T::* member) {
    return {name, member, 3, false};
}

// A field that older peers do not send: when the payload ends before it, the member keeps its default.
template <typename T, typename Member>
consteval Field<T, Member> optional_tail(Field<T, Member> inner) {
    inner.optional_tail = true;
    return inner;
}

consteval Reserved reserved(std::size_t count) { return {count}; }

template <std::unsigned_integral Count, typename T, typename Element>
consteval CountField<T, Element, Count> count(std::string_view name, std::vector<Element> T::* list) {
    return {name, list};
}

// The list whose length a count<Count>() before it carries.
template <std::unsigned_integral Count, typename T, typename Element>
consteval ListField<T, Element> list(std::string_view name, std::vector<Element> T::* member) {
    return {name, member, nullptr, std::numeric_limits<Count>::max()};
}

// A list whose length follows from other fields or from what was asked.
template <typename T, typename Element>
consteval ListField<T, Element> list(std::string_view name, std::vector<Element> T::* member,
                                     std::size_t (T::*length)() const) {
    return {name, member, length, std::numeric_limits<std::size_t>::max()};
}

// A struct that describes itself by a tuple of the above.
template <typename T>
concept Described = std::default_initializable<T> && requires {
    { T::kName } -> std::convertible_to<std::string_view>;
    { T::kWireSize } -> std::convertible_to<std::size_t>;
    T::fields;
};

// A command without a request or a response payload.
struct NoPayload {
    static constexpr std::string_view kName = "empty payload";
    static constexpr std::size_t kWireSize = 0;
    static constexpr auto fields = std::tuple{};
    friend bool operator==(const NoPayload&, const NoPayload&) = default;
};

}  // namespace memtide::fmapi
