#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "common/base/error.h"
#include "common/fmapi/commands.h"
#include "common/fmapi/message.h"

// Commands by the names that people type, and messages as JSON: for command lines, logs and captures.
namespace memtide::fmapi {

// A field of a payload, as --help tells of it.
struct FieldText {
    std::string name;
    std::size_t width = 0;  // bytes; of a list, of one element
    bool is_list = false;
    std::vector<FieldText> inner;          // of a nested structure, or of a list's elements
    std::vector<std::string_view> values;  // names that may stand for numbers
};

// One command, whatever its payloads' types are.
struct CommandText {
    Opcode opcode;
    std::string_view name;  // as the specification spells it
    std::string word;       // as it is typed: "get-physical-port-state"
    Traits traits;
    // The request's payload from its fields by name; kInvalidArgument names every mistake.
    Result<Payload> (*encode_request)(const boost::json::object& fields);
    // A payload's fields by name; what came behind them as "trailing", in hexadecimal. kProtocol as decode().
    Result<boost::json::object> (*request_to_json)(std::span<const std::byte> payload);
    // What was asked may decide how the answer reads; empty when it is not known.
    Result<boost::json::object> (*response_to_json)(std::span<const std::byte> request,
                                                    std::span<const std::byte> response);
    std::vector<FieldText> (*request_fields)();
    std::vector<FieldText> (*response_fields)();
};

// All of them, ascending by opcode.
std::span<const CommandText> command_texts();
// Null when there is none.
const CommandText* find_command(Opcode opcode);
// By word, name (in any case) or opcode ("5201", "0x5201", "5201h"); null when there is none.
const CommandText* find_command(std::string_view text);
// "5201", "0x5201" or "5201h", of whatever command.
Result<Opcode> parse_opcode(std::string_view text);

// Everything that a message says: header and payload, messages inside of tunnels too (of more than four in
// each other the inner ones stay in hexadecimal). `request` is what it answers, null when that is not known.
// A payload that cannot be read is there in hexadecimal, with what is wrong with it as "error".
boost::json::object to_json(const Message& message, const Message* request = nullptr);

}  // namespace memtide::fmapi
