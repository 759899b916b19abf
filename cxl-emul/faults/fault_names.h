#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/fmapi/opcode.h"
#include "common/fmapi/return_code.h"

// Commands and return codes as scenario files name them.
namespace memtide::emul {

// "bind-vppb" (the specification's name in small letters with dashes), "5201h" or "0x5201".
std::optional<fmapi::Opcode> parse_opcode(std::string_view text);
std::string name_in_scenario(fmapi::Opcode opcode);
// The known name that was probably meant; empty when none is near.
std::string nearest_opcode(std::string_view text);

// "busy", "06h" or "0x6".
std::optional<fmapi::ReturnCode> parse_return_code(std::string_view text);
std::string name_in_scenario(fmapi::ReturnCode code);
std::string nearest_return_code(std::string_view text);

}  // namespace memtide::emul
