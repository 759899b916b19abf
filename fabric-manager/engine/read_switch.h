#pragma once

#include <set>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

// Everything a switch and the devices behind it say, read in one go.
struct FabricReading {
    SwitchReading fabric;
    std::vector<DeviceReading> devices;
    // Ports that show a device which does not answer sensibly, and what is wrong with it.
    struct Unreadable {
        std::uint8_t port = 0;
        std::string why;
    };
    std::vector<Unreadable> unreadable;
};

// Reads ports, virtual switches, devices and LD allocations. LD serial numbers that `known` has are not asked
// for again. Fails only when the switch itself cannot be read; a device that cannot is listed as such.
boost::asio::awaitable<Result<FabricReading>> read_switch(FmApiClient& client, const SwitchId& id,
                                                          const Inventory& known);

// The vPPBs of one virtual switch.
boost::asio::awaitable<Result<std::vector<Vppb>>> read_vppbs(FmApiClient& client, std::uint8_t vcs);

// Sizes of the LDs of the MLD behind `port`, by LD id.
struct LdSizes {
    Bytes granularity;
    std::vector<Bytes> sizes;
};
boost::asio::awaitable<Result<LdSizes>> read_ld_sizes(FmApiClient& client, std::uint8_t port);

}  // namespace memtide::fm
