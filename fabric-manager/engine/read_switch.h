#pragma once

#include <map>
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

// By port, how often in a row a device that is not known yet did not say whether it has several heads.
using UnansweredHeads = std::map<std::uint8_t, int>;

// Reads ports, virtual switches, devices and LD allocations. LD serial numbers that `known` has are not asked
// for again. Fails only when the switch itself cannot be read; a device that cannot is listed as such. So is
// one that does not say for the first time whether it has several heads: an answer may get lost, and memory
// of another head must not be given out through this one. A peer that does not say so twice has one head.
boost::asio::awaitable<Result<FabricReading>> read_switch(FmApiClient& client, const SwitchId& id,
                                                          const Inventory& known,
                                                          UnansweredHeads& unanswered);

// The vPPBs of one virtual switch.
boost::asio::awaitable<Result<std::vector<Vppb>>> read_vppbs(FmApiClient& client, std::uint8_t vcs);

// Sizes of the LDs of the MLD behind `port`, by LD id.
struct LdSizes {
    Bytes granularity;
    std::vector<Bytes> sizes;
};
boost::asio::awaitable<Result<LdSizes>> read_ld_sizes(FmApiClient& client, std::uint8_t port);

}  // namespace memtide::fm
