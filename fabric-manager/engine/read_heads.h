#pragma once

#include <optional>

#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

// What a device says about its heads, checked; nullopt when it has one only.
using HeadsAnswer = std::optional<fmapi::GetMultiHeadedInfoResponse>;

// Asks the device behind the port. One that is known and has one head is not asked again: some peers need the
// whole command timeout to say that they do not know the command. For one that is not known no answer counts
// as one head, and in `unanswered` as one more time that it gave none. kProtocol when what it says makes no
// sense.
boost::asio::awaitable<Result<HeadsAnswer>> read_heads(FmApiClient& client, std::uint8_t port,
                                                       const Device* known, int& unanswered);

// Fills in device.multi_headed and the serial numbers of the LDs of the head that is at the device's port; of
// an SLD also its LDs and size. kProtocol when the LDs that answer there are not those of one head.
boost::asio::awaitable<Result<>> find_head(FmApiClient& client, DeviceReading& device,
                                           const fmapi::GetMultiHeadedInfoResponse& says,
                                           const Device* known);

// Errors that are about the switch, not about the one device that was asked for.
bool is_of_switch(const Error& error);
boost::asio::awaitable<Result<SerialNumber>> read_serial(FmApiClient& client, Target target);

}  // namespace memtide::fm
