#include "cxl-emul/faults/fault_names.h"

#include <cctype>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/base/nearest.h"

namespace memtide::emul {
namespace {

constexpr unsigned kReturnCodes = 0x1f;  // that have names

// "Get LD Info" -> "get-ld-info"
std::string dashed(std::string_view name) {
    std::string text;
    for (const char c : name) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
        if (plain)
            text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        else if (!text.empty() && text.back() != '-')
            text += '-';
    }
    while (text.ends_with('-')) text.pop_back();
    return text;
}

// "5201h" or "0x5201", at most 16 bits.
std::optional<std::uint16_t> parse_hex(std::string_view text) {
    if (text.starts_with("0x"))
        text.remove_prefix(2);
    else if (text.ends_with('h'))
        text.remove_suffix(1);
    else
        return std::nullopt;
    std::uint16_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

const std::map<std::string, fmapi::Opcode, std::less<>>& known_opcodes() {
    static const auto all = [] {
        std::map<std::string, fmapi::Opcode, std::less<>> names;
        for (const fmapi::OpcodeInfo& row : fmapi::opcodes()) names.emplace(dashed(row.name), row.opcode);
        return names;
    }();
    return all;
}

const std::map<std::string, fmapi::ReturnCode, std::less<>>& return_codes() {
    static const auto all = [] {
        std::map<std::string, fmapi::ReturnCode, std::less<>> names;
        for (unsigned code = 0; code < kReturnCodes; ++code) {
            const auto known = static_cast<fmapi::ReturnCode>(code);
            names.emplace(dashed(fmapi::name_of(known)), known);
        }
        return names;
    }();
    return all;
}

template <typename Value>
std::string nearest_in(std::string_view text, const std::map<std::string, Value, std::less<>>& known) {
    std::set<std::string, std::less<>> names;
    for (const auto& [name, value] : known) names.insert(name);
    return std::string(nearest_name(text, names));
}

template <typename Value>
std::string name_in(Value value, std::string_view name,
                    const std::map<std::string, Value, std::less<>>& known) {
    std::string text = dashed(name);
    const auto found = known.find(text);
    if (found != known.end() && found->second == value) return text;
    return fmt::format("{:#06x}", static_cast<unsigned>(value));
}

}  // namespace

std::optional<fmapi::Opcode> parse_opcode(std::string_view text) {
    if (const auto found = known_opcodes().find(text); found != known_opcodes().end()) return found->second;
    if (const auto value = parse_hex(text)) return static_cast<fmapi::Opcode>(*value);
    return std::nullopt;
}

std::string name_in_scenario(fmapi::Opcode opcode) {
    return name_in(opcode, fmapi::name_of(opcode), known_opcodes());
}

std::string nearest_opcode(std::string_view text) { return nearest_in(text, known_opcodes()); }

std::optional<fmapi::ReturnCode> parse_return_code(std::string_view text) {
    if (const auto found = return_codes().find(text); found != return_codes().end()) return found->second;
    if (const auto value = parse_hex(text)) return static_cast<fmapi::ReturnCode>(*value);
    return std::nullopt;
}

std::string name_in_scenario(fmapi::ReturnCode code) {
    return name_in(code, fmapi::name_of(code), return_codes());
}

std::string nearest_return_code(std::string_view text) { return nearest_in(text, return_codes()); }

}  // namespace memtide::emul
