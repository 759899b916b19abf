#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "common/fmapi/codec.h"
#include "common/fmapi/opcode.h"
#include "common/fmapi/return_code.h"
#include "common/fmapi/wire.h"

namespace memtide::fmapi {

// A string literal as a template argument.
template <std::size_t kLength>
struct Name {
    char text[kLength]{};
    // NOLINTNEXTLINE(google-explicit-constructor): a literal is what it is made of
    constexpr Name(const char (&literal)[kLength]) { std::copy_n(literal, kLength, text); }
    [[nodiscard]] consteval std::string_view view() const { return {text, kLength - 1}; }
};

// How a command may be treated by one who asks.
struct Traits {
    // Asked twice it leaves what once would have: whoever lost the answer may ask again.
    bool repeatable = false;
    // Answered Background Command Started; its end is found by Background Operation Status.
    bool background = false;
};
inline constexpr Traits kRepeatable{.repeatable = true};
inline constexpr Traits kInBackground{.background = true};

// All there is to a command: its opcode, its name as the specification spells it, and the payloads it takes
// and answers. What else knows commands (names, docs/fm-api.md, the tests, memtide fmapi) reads it from here.
template <Opcode kCode, Name kText, Described RequestPayload, Described ResponsePayload,
          Traits kHow = Traits{}>
struct Command {
    static constexpr Opcode kOpcode = kCode;
    static constexpr std::string_view kName = kText.view();
    static constexpr Traits kTraits = kHow;
    using Request = RequestPayload;
    using Response = ResponsePayload;
    static_assert(wire_size<Request>() == Request::kWireSize);
    static_assert(wire_size<Response>() == Response::kWireSize);
};

}  // namespace memtide::fmapi
