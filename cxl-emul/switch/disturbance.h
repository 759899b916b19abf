#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "common/fmapi/mctp.h"
#include "common/fmapi/message.h"
#include "common/fmapi/return_code.h"
#include "common/fmapi/wire_format.h"
#include "cxl-emul/switch/model.h"

namespace memtide::emul {

// What goes wrong in a switch because somebody wants it to (cxl-emul/faults). All calls come from the
// switch's strand, none may block.
class Disturbance {
  public:
    virtual ~Disturbance() = default;

    // The answer that a request gets instead of being carried out; nothing when it is carried out.
    virtual std::optional<fmapi::Message> refuse(const fmapi::MctpMessage& request) = 0;

    // What is sent for an answer: bytes, each piece after a pause behind the one before it.
    struct Piece {
        std::chrono::milliseconds after{0};
        std::vector<std::byte> bytes;
    };
    struct Delivery {
        std::vector<Piece> pieces;
        bool hang_up = false;  // then the connection is closed
    };
    virtual Delivery deliver(const fmapi::MctpMessage& request, fmapi::MctpMessage answer,
                             const fmapi::WireFormat& format) = 0;

    // Whether a notification that is due is not sent.
    virtual bool swallows_notification() = 0;

    // How a background operation that begins goes on.
    struct Course {
        std::chrono::milliseconds longer{0};
        std::shared_ptr<const bool> held;  // while it is true the operation stands still
        std::optional<fmapi::ReturnCode> ends_with;
        bool erases = true;  // false: a sanitize succeeds and leaves everything as it is
    };
    virtual Course course_of(const SwitchModel& model, const Operation& operation) = 0;
};

}  // namespace memtide::emul
