#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "common/base/error.h"
#include "fabric-manager/engine/manager.h"
#include "tests/fabric-manager/engine/fake_switch.h"

namespace memtide::bench {

// Switches without a wire (the engine's own fake) whose LDs are bound already, and a state file that knows
// it: what a manager with many compositions starts with. Each has 2 hosts with 250 vPPBs each and 32 MLDs of
// 16 LDs.
class BoundFabric {
  public:
    static constexpr int kMostBound = 500;  // of a switch

    BoundFabric(boost::asio::io_context& io, int switches);

    enum class Hosts { kBoth, kSecond };
    // Binds so many LDs of each switch (to one host 250 at most) and writes the state file with their
    // compositions, all Online.
    Result<> bind(int each, const std::string& state, Hosts hosts = Hosts::kBoth);
    // A manager on that state file; not started.
    Result<std::unique_ptr<fm::Manager>> open(boost::asio::io_context& io, const std::string& state,
                                              metrics::Registry& metrics) const;

    [[nodiscard]] std::size_t compositions() const { return compositions_; }
    [[nodiscard]] const std::vector<std::shared_ptr<fm::FakeSwitch>>& switches() const { return switches_; }
    // The host at a virtual switch (0 or 1) of a switch.
    static HostId host(int switch_number, std::uint8_t vcs);

  private:
    fm::Composition bound(int switch_number, int index, std::uint64_t sequence, Hosts hosts);

    fm::ManagerConfig config_;
    fm::FmApiClients clients_;
    std::vector<std::shared_ptr<fm::FakeSwitch>> switches_;
    std::size_t compositions_ = 0;
};

}  // namespace memtide::bench
