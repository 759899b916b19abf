#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "common/fmapi/mctp.h"
#include "common/fmapi/message.h"

// Commands travel in tunnels, one inside another: to a port's device, and on to one of its LDs.
namespace memtide::emul {

// A request at one component on its way, outermost first.
struct TunnelLevel {
    fmapi::MctpType type = fmapi::MctpType::kFmApi;
    fmapi::Message request;
    std::optional<std::uint8_t> port;  // of the device that gets it; nothing: the switch
    std::optional<std::uint8_t> ld;    // of that device
};

// At least one; tunnels that hold no request, and more than any component would open, end it.
std::vector<TunnelLevel> levels_of(const fmapi::MctpMessage& request);

// The answer to the outermost request in which the one at `level` is answered with this code, and the tunnels
// around it succeed.
fmapi::Message refused_at(const std::vector<TunnelLevel>& levels, std::size_t level, fmapi::ReturnCode code);

// Changes the innermost answer inside `answer`, when every tunnel around it succeeded.
void change_innermost(const std::vector<TunnelLevel>& levels, fmapi::Message& answer,
                      const std::function<void(const TunnelLevel&, fmapi::Message&)>& change);

}  // namespace memtide::emul
