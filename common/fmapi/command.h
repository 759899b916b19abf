#pragma once

#include "common/fmapi/codec.h"
#include "common/fmapi/opcode.h"
#include "common/fmapi/return_code.h"
#include "common/fmapi/wire.h"

namespace memtide::fmapi {

// A command: its opcode (which has the name, see opcode.h) and the payloads it takes and answers.
template <Opcode kCode, Described RequestPayload, Described ResponsePayload>
struct Command {
    static constexpr Opcode kOpcode = kCode;
    using Request = RequestPayload;
    using Response = ResponsePayload;
    static_assert(wire_size<Request>() == Request::kWireSize);
    static_assert(wire_size<Response>() == Response::kWireSize);
};

}  // namespace memtide::fmapi
