#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/fmapi/dialect.h"
#include "common/fmapi/mctp.h"

namespace memtide::emul {

// What one peer of a switch hears: the switch's answers, with what its dialect makes of them. One for each
// connection. Not thread safe.
class DialectSpeaker {
  public:
    explicit DialectSpeaker(const fmapi::Dialect& dialect) : dialect_(dialect) {}

    [[nodiscard]] const fmapi::WireFormat& wire() const { return dialect_.wire; }
    // Whether the switch takes the request in at all.
    [[nodiscard]] bool hears(const fmapi::MctpMessage& request) const {
        return request.type == fmapi::MctpType::kControl || !dialect_.needs_endpoint_id || eid_ != 0;
    }
    // The answer to a control message, if it wants one.
    std::optional<fmapi::MctpMessage> answer_control(const fmapi::MctpMessage& request);
    // Changes the answer into what the dialect says; nothing when it says nothing.
    std::optional<fmapi::Message> shape(const fmapi::Message& request, fmapi::Message answer);

  private:
    const fmapi::Dialect& dialect_;
    std::uint8_t eid_ = 0;
    fmapi::Payload last_tunnelled_;  // what a tunnel's answer carried last
};

}  // namespace memtide::emul
