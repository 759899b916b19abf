#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/fmapi/wire_format.h"

namespace memtide::fmapi {

// How a switch speaks the FM API: the specification, and where it deviates from it. What is here without a
// word on the client the client accepts from everybody; it is here so that the emulated switch can do it.
struct Dialect {
    std::string_view name;
    std::string_view summary;
    WireFormat wire = {};
    // 18; 17 without the component type (CXL 2.0); 14 without the subsystem ids.
    std::uint8_t identify_length = 18;
    std::uint8_t identify_switch_length = 73;  // more: zeros behind it
    bool opcode_zero_in_responses = false;     // matched by their tag
    // No answer to a command that it does not know; one in a tunnel gets success and the message that the
    // tunnel carried last.
    bool silent_about_unknown = false;
    bool one_client = false;         // further connections wait for the first to end
    bool needs_endpoint_id = false;  // answers nothing before MCTP's Set Endpoint ID
    std::uint8_t in_flight = 1;      // commands that it takes before it has answered the first
};

// All of them; the first is the specification's.
std::span<const Dialect> dialects();
const Dialect& spec_dialect();
// nullptr when there is none of that name.
const Dialect* find_dialect(std::string_view name);
// "spec, true-length, ...", for messages.
std::string dialect_names();

// The dialect that fits what a switch's answer to Identify looked like.
const Dialect& recognise_dialect(const WireFormat& wire, bool opcode_zero, std::size_t identify_length);

}  // namespace memtide::fmapi
