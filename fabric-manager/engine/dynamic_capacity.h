#pragma once

#include <chrono>
#include <cstdint>

#include <boost/asio/awaitable.hpp>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/inventory.h"

// What the manager does with dynamic capacity devices (CXL 3.1, 9.13.3): LD n of such a device has what is
// added to host n of it. Everything here may be repeated. Errors are those of FmApiClient.
namespace memtide::fm {

// Capacity and LDs of the device behind `device.port`, of which `device.lds` is filled already as far as an
// MLD tells, without sizes. What cannot be given out safely does not count as capacity: regions that do not
// sanitize what is released. kInvalidArgument when the device has no dynamic capacity, kProtocol when none of
// it can be used or what it says makes no sense.
boost::asio::awaitable<Result<>> read_dynamic_capacity(FmApiClient& client, DeviceReading& device);

// Which LD of a dynamic capacity device, by the port and the number of its host.
struct DcHost {
    std::uint8_t port = 0;
    std::uint16_t host = 0;
};

// Offers `size` bytes to the host, in as many adds as the device needs for that. Each has a tag of its own
// that names the part: the composition's letters, the part, and a number. kExhausted when the device has not
// so much; then, and after any other error, some of it may be offered.
boost::asio::awaitable<Result<>> offer_capacity(FmApiClient& client, DcHost to, Bytes size, PartId part);

// Bytes that the host has accepted.
boost::asio::awaitable<Result<Bytes>> accepted_capacity(FmApiClient& client, DcHost of);

// Takes back by force, to be sanitized, whatever the host was offered or has accepted; ends when it has
// nothing. The host must not use it any more. kTimeout when the device goes on listing something.
boost::asio::awaitable<Result<>> withdraw_capacity(FmApiClient& client, DcHost from,
                                                   std::chrono::milliseconds timeout);

}  // namespace memtide::fm
