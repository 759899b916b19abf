#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/fmapi/message.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/fmapi/session.h"

namespace memtide::fm {

// Wraps a request for `target` in the Tunnel Management Commands it needs to get there. What comes out is
// sent to the switch: the request itself when it is for the switch.
fmapi::Message wrap(const Target& target, fmapi::Message request);

// Takes the target's response out of what the switch answered to wrap(target, request). kProtocol when an
// inner message is not the answer to the inner request; the error of its return code when a tunnel on the way
// refused.
Result<fmapi::Message> unwrap(const Target& target, const fmapi::Message& request, fmapi::Message answer);

// Session::exchange with a target.
boost::asio::awaitable<Result<fmapi::Message>> exchange_with(std::shared_ptr<Session> session, Target target,
                                                             Ask ask);

}  // namespace memtide::fm
