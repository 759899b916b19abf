#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/fmapi/wire.h"

namespace memtide::fmapi {

// encode(payload): its bytes as they go behind a CCI header.
template <Described T>
std::vector<std::byte> encode(const T& payload);

// decode<T>(bytes): the payload, or kProtocol naming the first field that `bytes` ends before. Bytes behind
// the last field are tolerated. `initial` carries members that are not on the wire (see
// GetVirtualSwitchInfo).
template <Described T>
Result<T> decode(std::span<const std::byte> bytes, T initial = {});

// A payload and what came behind its last field: of a later revision, or a vendor's. The two encoded one
// behind the other are the bytes that came.
template <Described T>
struct Decoded {
    T payload;
    std::vector<std::byte> trailing;
};
template <Described T>
Result<Decoded<T>> decode_keeping(std::span<const std::byte> bytes, T initial = {});

// Bytes of T on the wire without its lists: what T::kWireSize must say.
template <Described T>
constexpr std::size_t wire_size();

// One row of a payload's description. Nested names are joined: "port.link_flags"; lists end in "[]".
struct FieldDescription {
    std::string name;
    std::size_t offset;  // from the start of the payload, or of the list element
    std::size_t width;   // bytes; for a list, of one element
    bool is_list;
    bool optional_tail;
};
template <Described T>
std::vector<FieldDescription> describe();

// Whether the last `width` bytes of T are whole fields that a payload may end before.
template <Described T>
bool is_optional_tail(std::size_t width);

namespace detail {

void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t width);

// Walks a payload being decoded and remembers the first field that was missing.
class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    // The next `width` bytes as a little-endian number; 0 and failed() when there are not so many.
    std::uint64_t take(std::size_t width, std::string_view name);
    void take_bytes(std::span<std::byte> into, std::string_view name);
    void skip(std::size_t count);
    [[nodiscard]] std::size_t remaining() const { return bytes_.size() - offset_; }
    [[nodiscard]] bool failed() const { return failed_; }
    // Names of enclosing fields, for the error: "ports[2]."
    void enter(std::string_view name, std::optional<std::size_t> index = std::nullopt);
    void leave();
    [[nodiscard]] Error error(std::string_view payload) const;

  private:
    bool need(std::size_t width, std::string_view name);

    std::span<const std::byte> bytes_;
    std::size_t offset_ = 0;
    bool failed_ = false;
    std::string path_;
    std::vector<std::size_t> path_lengths_;
    std::string missing_;
    std::size_t missing_width_ = 0;
};

template <typename Member>
inline constexpr bool is_scalar = std::is_integral_v<Member> || std::is_enum_v<Member>;

template <typename Member>
consteval std::size_t member_size() {
    if constexpr (is_scalar<Member>)
        return sizeof(Member);
    else if constexpr (Described<Member>)
        return wire_size<Member>();
    else
        return sizeof(Member);  // std::array of bytes
}

constexpr std::size_t fixed_size(const Reserved& r) { return r.count; }
template <typename T, typename M>
constexpr std::size_t fixed_size(const Field<T, M>& f) {
    return f.width != 0 ? f.width : member_size<M>();
}
template <typename T, typename E, typename C>
constexpr std::size_t fixed_size(const CountField<T, E, C>&) {
    return sizeof(C);
}
template <typename T, typename E>
constexpr std::size_t fixed_size(const ListField<T, E>&) {
    return 0;
}

// --- encoding ---
template <Described T>
void encode_fields(std::vector<std::byte>& out, const T& value);

template <typename Member>
void encode_member(std::vector<std::byte>& out, const Member& value, std::size_t width) {
    if constexpr (is_scalar<Member>)
        put(out, static_cast<std::uint64_t>(value), width);
    else if constexpr (Described<Member>)
        encode_fields(out, value);
    else
        for (const auto element : value) put(out, static_cast<std::uint64_t>(element), 1);
}

template <typename T>
void encode_field(std::vector<std::byte>& out, const T&, const Reserved& f) {
    put(out, 0, f.count);
}
template <typename T, typename M>
void encode_field(std::vector<std::byte>& out, const T& value, const Field<T, M>& f) {
    encode_member(out, value.*f.member, f.width);
}
template <typename T, typename E, typename C>
void encode_field(std::vector<std::byte>& out, const T& value, const CountField<T, E, C>& f) {
    put(out, std::min<std::uint64_t>((value.*f.list).size(), std::numeric_limits<C>::max()), sizeof(C));
}
template <typename T, typename E>
void encode_field(std::vector<std::byte>& out, const T& value, const ListField<T, E>& f) {
    const std::vector<E>& elements = value.*f.list;
    for (std::size_t i = 0; i < std::min(elements.size(), f.limit); ++i)
        encode_member(out, elements[i], member_size<E>());
}

template <Described T>
void encode_fields(std::vector<std::byte>& out, const T& value) {
    static_assert(wire_size<T>() == T::kWireSize, "the fields do not add up to kWireSize");
    std::apply([&](const auto&... f) { (encode_field(out, value, f), ...); }, T::fields);
}

// --- decoding ---
template <Described T>
void decode_fields(Reader& reader, T& value);

template <typename Member>
void decode_member(Reader& reader, Member& value, std::string_view name, std::size_t width) {
    if constexpr (is_scalar<Member>) {
        value = static_cast<Member>(reader.take(width, name));
    } else if constexpr (Described<Member>) {
        reader.enter(name);
        decode_fields(reader, value);
        reader.leave();
    } else {
        reader.take_bytes(std::as_writable_bytes(std::span(value)), name);
    }
}

template <typename T>
void decode_field(Reader& reader, T&, const Reserved& f) {
    reader.skip(f.count);
}
template <typename T, typename M>
void decode_field(Reader& reader, T& value, const Field<T, M>& f) {
    if (f.optional_tail && reader.remaining() == 0) return;
    decode_member(reader, value.*f.member, f.name, f.width);
}
template <typename T, typename E, typename C>
void decode_field(Reader& reader, T& value, const CountField<T, E, C>& f) {
    // A peer can claim any count; one element more than can be there is enough for the list to name what is
    // missing.
    const std::uint64_t claimed = reader.take(sizeof(C), f.name);
    const std::uint64_t possible = reader.remaining() / member_size<E>() + 1;
    (value.*f.list).resize(static_cast<std::size_t>(std::min(claimed, possible)));
}
template <typename T, typename E>
void decode_field(Reader& reader, T& value, const ListField<T, E>& f) {
    std::vector<E>& elements = value.*f.list;
    if (f.length != nullptr && !reader.failed())
        elements.resize(std::min((value.*f.length)(), reader.remaining() / member_size<E>() + 1));
    for (std::size_t i = 0; i < elements.size() && !reader.failed(); ++i) {
        if constexpr (Described<E>) {
            if constexpr (requires { value.prepare(elements[i]); }) value.prepare(elements[i]);
            reader.enter(f.name, i);
            decode_fields(reader, elements[i]);
            reader.leave();
        } else {
            decode_member(reader, elements[i], f.name, member_size<E>());
        }
    }
}

template <Described T>
void decode_fields(Reader& reader, T& value) {
    static_assert(wire_size<T>() == T::kWireSize, "the fields do not add up to kWireSize");
    std::apply([&](const auto&... f) { (decode_field(reader, value, f), ...); }, T::fields);
}

// --- describing ---
struct Describer {
    std::vector<FieldDescription> rows;
    std::size_t offset = 0;

    void add(std::string name, std::size_t width, bool is_list = false, bool optional = false);
    void visit(const Reserved& f) { add("reserved", f.count); }
    template <typename T, typename M>
    void visit(const Field<T, M>& f) {
        add(std::string(f.name), fixed_size(f), false, f.optional_tail);
    }
    template <typename T, typename E, typename C>
    void visit(const CountField<T, E, C>& f) {
        add(std::string(f.name), sizeof(C));
    }
    template <typename T, typename E>
    void visit(const ListField<T, E>& f) {
        add(std::string(f.name) + "[]", member_size<E>(), true);
        if constexpr (Described<E>)
            for (FieldDescription row : describe<E>()) {
                row.name.insert(0, std::string(f.name) + "[].");
                rows.push_back(std::move(row));
            }
    }
};

}  // namespace detail

template <Described T>
constexpr std::size_t wire_size() {
    return std::apply([](const auto&... f) { return (std::size_t{0} + ... + detail::fixed_size(f)); },
                      T::fields);
}

template <Described T>
std::vector<std::byte> encode(const T& payload) {
    std::vector<std::byte> out;
    out.reserve(wire_size<T>());
    detail::encode_fields(out, payload);
    return out;
}

template <Described T>
Result<T> decode(std::span<const std::byte> bytes, T initial) {
    detail::Reader reader(bytes);
    detail::decode_fields(reader, initial);
    if (reader.failed()) return std::unexpected(reader.error(T::kName));
    return initial;
}

template <Described T>
Result<Decoded<T>> decode_keeping(std::span<const std::byte> bytes, T initial) {
    detail::Reader reader(bytes);
    detail::decode_fields(reader, initial);
    if (reader.failed()) return std::unexpected(reader.error(T::kName));
    const auto rest = bytes.last(reader.remaining());
    return Decoded<T>{std::move(initial), {rest.begin(), rest.end()}};
}

template <Described T>
std::vector<FieldDescription> describe() {
    detail::Describer describer;
    std::apply([&](const auto&... f) { (describer.visit(f), ...); }, T::fields);
    return std::move(describer.rows);
}

template <Described T>
bool is_optional_tail(std::size_t width) {
    const std::vector<FieldDescription> rows = describe<T>();
    std::size_t tail = 0;
    for (auto row = rows.rbegin(); row != rows.rend() && row->optional_tail && tail < width; ++row) {
        if (row->name.find("[].") != std::string::npos) return false;  // of a list's elements
        tail += row->width;
    }
    return tail == width;
}

}  // namespace memtide::fmapi
