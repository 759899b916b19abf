#include "tests/bench/bound_fabric.h"

#include <future>

#include <fmt/format.h>

#include "tests/bench/store_life.h"

namespace memtide::bench {

namespace {

constexpr int kVppbs = 250;  // a host
constexpr int kMlds = 32;
constexpr int kLds = 16;
constexpr std::uint64_t kEventsEach = 500;
constexpr std::uint64_t kUnit = 256U << 20U;

SwitchId switch_id(int number) { return SwitchId("switch" + std::to_string(number)); }

Result<> apply(fm::Store& store, fm::Mutation mutation) {
    std::promise<Result<>> done;
    store.apply(std::move(mutation), [&](Result<> result) { done.set_value(std::move(result)); });
    return done.get_future().get();
}

std::shared_ptr<fm::FakeSwitch> make_switch(boost::asio::io_context& io, int number) {
    auto one = std::make_shared<fm::FakeSwitch>(io.get_executor());
    one->add_hosts(kVppbs);
    for (int mld = 0; mld < kMlds; ++mld) {
        const auto port = static_cast<std::uint8_t>(2 + mld);
        one->add_mld(port, std::vector<std::uint64_t>(kLds, 1));
        // Serial numbers are one of a kind over all switches.
        const std::uint64_t own = static_cast<std::uint64_t>(number) << 40U;
        one->port(port).serial += own;
        for (fm::FakeLd& ld : one->port(port).lds) ld.serial += own;
    }
    return one;
}

fm::Event old_event(std::uint64_t id, const HostId& host) {
    fm::Event event;
    event.id = id;
    event.type = "composition.state";
    event.host = host;
    event.detail = "one of many events that are kept for those who come back";
    return event;
}

}  // namespace

HostId BoundFabric::host(int switch_number, std::uint8_t vcs) {
    return HostId("host" + std::to_string(switch_number) + (vcs == 0 ? "a" : "b"));
}

BoundFabric::BoundFabric(boost::asio::io_context& io, int switches) {
    for (int number = 0; number < switches; ++number) {
        const SwitchId id = switch_id(number);
        for (const std::uint8_t vcs : {std::uint8_t{0}, std::uint8_t{1}})
            config_.hosts.push_back({host(number, vcs), {{id, vcs}}});
        config_.switches.push_back({id, "fake://" + id.value});
        switches_.push_back(make_switch(io, number));
        clients_[id] = switches_.back();
    }
    // Reading the switches again is another matter than what is measured.
    config_.timing.switch_poll = std::chrono::minutes(60);
}

// Binds the n-th LD of the switch, and says what the journal has about it.
fm::Composition BoundFabric::bound(int switch_number, int index, std::uint64_t sequence, Hosts hosts) {
    const bool both = hosts == Hosts::kBoth;
    const auto vcs = static_cast<std::uint8_t>(both ? index % 2 : 1);
    const auto vppb = static_cast<std::uint8_t>(both ? index / 2 : index);
    const auto port = static_cast<std::uint8_t>(2 + index / kLds);
    const auto ld = static_cast<std::uint16_t>(index % kLds);
    fm::FakeSwitch& one = *switches_[static_cast<std::size_t>(switch_number)];
    fmapi::Vppb& at = one.vppb(vcs, vppb);
    at.binding = fmapi::VppbBinding::kBoundLd;
    at.port = port;
    at.ld = static_cast<std::uint8_t>(ld);
    fm::Composition c = composition(sequence, 5);
    c.revision = 1;
    c.phase_started = {};
    c.host = host(switch_number, vcs);
    c.size = Bytes{kUnit};
    fm::Part& part = c.parts[0];
    part.memory = {DeviceId(fmt::format("mld-{:016x}", one.port(port).serial)), LdId{ld}};
    part.serial = SerialNumber{one.port(port).lds[ld].serial};
    part.port = port;
    part.size = c.size;
    part.where = {switch_id(switch_number), vcs, vppb};
    return c;
}

Result<> BoundFabric::bind(int each, const std::string& state, Hosts hosts) {
    auto store = fm::open_sqlite_store({.path = state});
    if (!store) return std::unexpected(store.error());
    std::uint64_t next_event = 1;
    for (int number = 0; number < static_cast<int>(switches_.size()); ++number) {
        fm::Mutation many;
        for (int i = 0; i < each; ++i)
            many.compositions.push_back({bound(number, i, ++compositions_, hosts), false});
        for (std::uint64_t i = 0; i < kEventsEach; ++i)
            many.events.push_back(old_event(next_event++, host(number, 0)));
        if (Result<> ok = apply(**store, std::move(many)); !ok) return ok;
    }
    return {};
}

Result<std::unique_ptr<fm::Manager>> BoundFabric::open(boost::asio::io_context& io, const std::string& state,
                                                       metrics::Registry& metrics) const {
    auto store = fm::open_sqlite_store({.path = state});
    if (!store) return std::unexpected(store.error());
    return fm::Manager::open(io.get_executor(), config_, *std::move(store), clients_, metrics);
}

}  // namespace memtide::bench
