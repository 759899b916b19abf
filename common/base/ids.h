#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/error.h"

namespace memtide {

// A name that cannot be mixed up with the name of another kind of thing.
template <typename Tag>
struct Id {
    std::string value;

    Id() = default;
    explicit Id(std::string text) : value(std::move(text)) {}
    friend auto operator<=>(const Id&, const Id&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Id& id) { return out << id.value; }
};

using HostId = Id<struct HostTag>;
using SwitchId = Id<struct SwitchTag>;
using DeviceId = Id<struct DeviceTag>;
using CompositionId = Id<struct CompositionTag>;

// A name people give in configs and URLs: 1 to 63 of [a-z0-9-], not at either end a dash (RFC 1123 label).
Result<> check_name(std::string_view name);

// PCIe Device Serial Number (PCIe 6.0, 7.9.3). Written "0x4d54000100000001": JSON numbers lose bits beyond
// 2^53.
struct SerialNumber {
    std::uint64_t value = 0;
    friend auto operator<=>(SerialNumber, SerialNumber) = default;
};
std::string format_serial(SerialNumber serial);
// Reads "0x..." or decimal digits; kInvalidArgument otherwise.
Result<SerialNumber> parse_serial(std::string_view text);

// Logical device id inside an MLD; kWholeDevice names an SLD's only one (CXL 3.1, 7.6.7.2.2: FFFFh = whole
// port).
struct LdId {
    std::uint16_t value = 0xffff;
    friend auto operator<=>(LdId, LdId) = default;
};
inline constexpr LdId kWholeDevice{0xffff};

// A region of a composition: what becomes one range of memory in the host, of one LD or interleaved over
// several. Written "c-7f3k2m9q1x/0".
struct RegionId {
    CompositionId composition;
    std::uint32_t number = 0;
    friend auto operator<=>(const RegionId&, const RegionId&) = default;
};
std::string to_string(const RegionId& id);

}  // namespace memtide

template <typename Tag>
struct std::hash<memtide::Id<Tag>> {
    std::size_t operator()(const memtide::Id<Tag>& id) const noexcept {
        return std::hash<std::string>{}(id.value);
    }
};
template <>
struct std::hash<memtide::SerialNumber> {
    std::size_t operator()(memtide::SerialNumber s) const noexcept {
        return std::hash<std::uint64_t>{}(s.value);
    }
};
