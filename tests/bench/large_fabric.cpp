#include "tests/bench/large_fabric.h"

#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fabric-manager/store/store.h"
#include "tests/fabric-manager/engine/fake_switch.h"

namespace memtide::bench {
namespace {

SwitchId switch_name(int number) { return SwitchId(fmt::format("switch{:03}", number)); }

// Hosts at the first ports, an MLD at each of the others.
std::shared_ptr<fm::FakeSwitch> make_switch(boost::asio::io_context& io, int number, const FabricSize& size) {
    auto one = std::make_shared<fm::FakeSwitch>(io.get_executor());
    for (int host = 0; host < size.hosts_per_switch; ++host) {
        const auto id = static_cast<std::uint8_t>(host);
        fm::FakePort port;
        port.id = id;
        port.upstream = true;
        one->ports.push_back(port);
        one->vcss.push_back({id, id, std::vector<fmapi::Vppb>(4)});
    }
    for (int device = 0; device < size.devices_per_switch; ++device) {
        const auto id = static_cast<std::uint8_t>(size.hosts_per_switch + device);
        one->add_mld(id, std::vector<std::uint64_t>(static_cast<std::size_t>(size.lds_per_device), 1));
        // Serial numbers are unique in the whole fabric.
        fm::FakePort& port = one->port(id);
        port.serial += static_cast<std::uint64_t>(number + 1) << 40;
        for (std::size_t i = 0; i < port.lds.size(); ++i) port.lds[i].serial = port.serial + 1 + i;
    }
    return one;
}

fm::ManagerConfig make_config(const FabricSize& size) {
    fm::ManagerConfig config;
    for (int number = 0; number < size.switches; ++number) {
        config.switches.push_back({switch_name(number), fmt::format("fake://{}", number)});
        for (int host = 0; host < size.hosts_per_switch; ++host)
            config.hosts.push_back({HostId(fmt::format("host{:05}", number * size.hosts_per_switch + host)),
                                    {{switch_name(number), static_cast<std::uint8_t>(host)}}});
    }
    // Reading the switches again is another matter than what is measured.
    config.timing.switch_poll = std::chrono::minutes(60);
    return config;
}

}  // namespace

LargeFabric::LargeFabric(boost::asio::io_context& io, const FabricSize& size) : io_(io) {
    fm::FmApiClients clients;
    for (int number = 0; number < size.switches; ++number)
        clients.emplace(switch_name(number), make_switch(io, number, size));
    auto store = fm::open_sqlite_store({.path = folder_.file("state.db"), .limit = std::nullopt});
    if (!store) throw std::runtime_error(store.error().message);
    auto manager = fm::Manager::open(io.get_executor(), make_config(size), *std::move(store),
                                     std::move(clients), metrics_);
    if (!manager) throw std::runtime_error(manager.error().message);
    manager_ = *std::move(manager);
    manager_->start();
}

LargeFabric::~LargeFabric() { manager_.reset(); }

void LargeFabric::wait_until_ready() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (!manager_->readiness().ready || !manager_->readiness().reasons.empty()) {
        if (std::chrono::steady_clock::now() > deadline)
            throw std::runtime_error("the fabric is not ready after 5 minutes");
        io_.restart();
        io_.run_for(std::chrono::milliseconds(20));
    }
}

}  // namespace memtide::bench
