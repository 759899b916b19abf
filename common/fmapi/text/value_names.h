#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/fmapi/commands.h"

// What values are called where people read and type them.
namespace memtide::fmapi {

struct ValueName {
    std::uint64_t value;
    std::string_view name;
};

// Of an enumeration; none for those that have no names here.
template <typename Enum>
inline constexpr std::array<ValueName, 0> kValueNames{};

template <>
inline constexpr auto kValueNames<MctpType> = std::to_array<ValueName>({{0x07, "fm-api"}, {0x08, "cci"}});
template <>
inline constexpr auto kValueNames<ComponentType> =
    std::to_array<ValueName>({{0x00, "switch"}, {0x03, "type-3"}, {0xff, "unknown"}});
template <>
inline constexpr auto kValueNames<EventLog> =
    std::to_array<ValueName>({{0, "informational"}, {1, "warning"}, {2, "failure"}, {3, "fatal"}});
template <>
inline constexpr auto kValueNames<MediaStatus> =
    std::to_array<ValueName>({{0, "normal"},
                              {1, "not-ready"},
                              {2, "persistency-lost"},
                              {3, "data-lost"},
                              {4, "power-loss-loses-persistency"},
                              {5, "shutdown-loses-persistency"},
                              {6, "persistency-loss-imminent"},
                              {7, "power-loss-loses-data"},
                              {8, "shutdown-loses-data"},
                              {9, "data-loss-imminent"}});
template <>
inline constexpr auto kValueNames<PortConfigState> = std::to_array<ValueName>({{0x0, "disabled"},
                                                                               {0x1, "bind-in-progress"},
                                                                               {0x2, "unbind-in-progress"},
                                                                               {0x3, "downstream"},
                                                                               {0x4, "upstream"},
                                                                               {0x5, "fabric"},
                                                                               {0xf, "no-such-port"}});
template <>
inline constexpr auto kValueNames<ConnectedDeviceType> = std::to_array<ValueName>(
    {{0, "none"}, {1, "pcie"}, {2, "type-1"}, {3, "type-2"}, {4, "type-3-sld"}, {5, "type-3-mld"}});
template <>
inline constexpr auto kValueNames<ConnectedDeviceMode> =
    std::to_array<ValueName>({{0, "none"}, {1, "cxl-1.1"}, {2, "cxl-2.0"}, {3, "cxl-256b"}});
template <>
inline constexpr auto kValueNames<PortOperation> =
    std::to_array<ValueName>({{0, "assert-perst"}, {1, "deassert-perst"}, {2, "reset-ppb"}});
template <>
inline constexpr auto kValueNames<DomainValidationState> =
    std::to_array<ValueName>({{0, "not-set"}, {1, "set"}});
template <>
inline constexpr auto kValueNames<VcsState> =
    std::to_array<ValueName>({{0x00, "disabled"}, {0x01, "enabled"}, {0xff, "no-such-vcs"}});
template <>
inline constexpr auto kValueNames<VppbBinding> = std::to_array<ValueName>(
    {{0, "unbound"}, {1, "in-progress"}, {2, "bound-port"}, {3, "bound-ld"}, {4, "bound-pid"}});
template <>
inline constexpr auto kValueNames<UnbindOption> =
    std::to_array<ValueName>({{0, "wait"}, {1, "managed"}, {2, "surprise"}});
template <>
inline constexpr auto kValueNames<TunnelTarget> =
    std::to_array<ValueName>({{0, "port-or-ld"}, {1, "ld-pool"}});
template <>
inline constexpr auto kValueNames<LdGranularity> =
    std::to_array<ValueName>({{0, "256MiB"}, {1, "512MiB"}, {2, "1GiB"}});
template <>
inline constexpr auto kValueNames<DcSelection> =
    std::to_array<ValueName>({{0, "free"}, {1, "contiguous"}, {2, "prescriptive"}, {3, "shared"}});
template <>
inline constexpr auto kValueNames<PidBindingOperation> =
    std::to_array<ValueName>({{0, "bind"}, {1, "unbind"}});

}  // namespace memtide::fmapi
