#include "common/fmapi/opcode.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "common/fmapi/commands.h"

namespace memtide::fmapi {
namespace {

template <typename... Command>
consteval auto rows_of(std::tuple<Command...>) {
    return std::array{OpcodeInfo{Command::kOpcode, Command::kName, Command::kTraits.repeatable,
                                 Command::kTraits.background}...};
}
constexpr auto kOpcodes = rows_of(Commands{});
// Ascending, and each opcode once.
static_assert(std::ranges::adjacent_find(kOpcodes, std::ranges::greater_equal{}, &OpcodeInfo::opcode) ==
              kOpcodes.end());

}  // namespace

std::span<const OpcodeInfo> opcodes() { return kOpcodes; }

const OpcodeInfo* find(Opcode opcode) {
    const auto row = std::ranges::lower_bound(kOpcodes, opcode, {}, &OpcodeInfo::opcode);
    return row != kOpcodes.end() && row->opcode == opcode ? &*row : nullptr;
}

std::string_view name_of(Opcode opcode) {
    const OpcodeInfo* const row = find(opcode);
    return row != nullptr ? row->name : "unknown command";
}

std::string to_string(Opcode opcode) {
    return fmt::format("{} ({:04x}h)", name_of(opcode), static_cast<unsigned>(opcode));
}

}  // namespace memtide::fmapi
