#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "common/metrics/registry.h"
#include "fabric-manager/engine/manager.h"
#include "fabric-manager/store/store.h"
#include "tests/fabric-manager/engine/fake_switch.h"

namespace memtide::fm {

inline const std::vector<std::string> kNone;  // what Rig::wrong() says when nothing is

// In the unit in which CXL memory is given out.
inline Bytes units(std::uint64_t count) { return kCxlGranule * count; }
PlacementPolicy spread(std::uint8_t devices = kMostParts, bool reprovide = false);
// Interleaved over so many devices.
PlacementPolicy ways(std::uint8_t count);

// What an agent would do on one host, against the fake switch's devices.
struct FakeAgent {
    HostId host;
    std::uint8_t vcs = 0;
    bool enabled = true;
    std::string boot_id = "boot-1";
    bool refuses_to_let_go = false;  // something holds the memory
    std::vector<Holder> holders;
    std::vector<HostWindow> windows;
    // What it does with memory that it never had online: passes over it, or says that it cannot.
    enum class NewMemory { kOnlined, kIgnored, kRefused } new_memory = NewMemory::kOnlined;
    // What it does with dynamic capacity that it is offered.
    enum class Offers { kTaken, kIgnored, kRefused } offers = Offers::kTaken;
    bool gives_back = true;            // when it takes memory offline
    bool knows_read_back = true;       // else it passes over that memory is to be verified
    std::string reboots_at_read_back;  // as this boot, once
    int reports = 0;
    std::shared_ptr<FakeSwitch> also;  // another switch that the host is attached to, at the same VCS

    // Does what is desired and says what is then true.
    ObservedReport act(FakeSwitch& fabric, const DesiredState& desired);

  private:
    // Reads back what is to be verified; true when it may go online.
    bool read_back(const std::vector<FakeLd*>& lds, const DesiredRegion& wanted, ObservedRegion& seen);
};

// Follows the desired state of its host until the manager goes, and *alive becomes false with it.
boost::asio::awaitable<void> follow(Manager* manager, std::shared_ptr<bool> alive,
                                    std::shared_ptr<FakeAgent> agent, std::shared_ptr<FakeSwitch> fabric);

// A manager between a fake switch and fake agents, on a store on the disk that outlives it.
class Rig {
  public:
    Rig();
    ~Rig();

    ManagerConfig config;
    SqliteOptions store;                 // without a path: in a folder of its own, which goes with it
    std::shared_ptr<FakeSwitch> fabric;  // "switch0"
    // Further ones; the configuration is the test's.
    std::map<SwitchId, std::shared_ptr<FakeSwitch>> others;
    // Sees what is gone after 10 ms; before start().
    void quick();
    // A second one, "switch1", that host0 is attached to as well.
    FakeSwitch& add_second_switch();
    std::vector<std::shared_ptr<FakeAgent>> agents;
    std::unique_ptr<Manager> manager;

    // Opens and starts a manager; agents begin to follow it.
    void start();
    // Waits until it is ready too.
    void start_ready();
    // In good order.
    void stop();
    // As by kill -9, as far as that goes within one process.
    void kill();

    // Runs the world until the condition holds; false when it does not within 20 s.
    bool run_until(const std::function<bool()>& condition);
    // Runs it for 50 ms, for what must not happen; without a manager, until nothing is left to do. What must
    // happen is waited for with `run_until`.
    void settle();
    template <typename T>
    T run(boost::asio::awaitable<T> call) {
        std::optional<T> result;
        boost::asio::co_spawn(io_, std::move(call), [&](std::exception_ptr failure, T value) {
            if (failure) std::rethrow_exception(failure);
            result = std::move(value);
        });
        if (!run_until([&] { return result.has_value(); }))
            throw std::runtime_error("a call did not end in 20 s");
        return *std::move(result);
    }

    Outcome<Created> create(const std::string& host, std::uint64_t units,
                            std::optional<IdempotencyKey> key = {});
    Outcome<Created> create(const std::string& host, std::uint64_t units, PlacementPolicy policy,
                            std::optional<IdempotencyKey> key = {});
    // Creates and waits for Online.
    Composition online(const std::string& host, std::uint64_t units, PlacementPolicy policy = {});
    // Of two parts of a unit, which host0 has from the devices at ports 2 and 3; starts the manager.
    Composition two_parts(bool reprovide);
    Outcome<Composition> resize(const CompositionId& id, std::uint64_t units, Precondition precondition = {});
    Outcome<Composition> release(const CompositionId& id, bool force = false);
    // Releases and waits for Released.
    void released(const CompositionId& id);
    bool reaches(const CompositionId& id, CompositionState state);
    Composition get(const CompositionId& id) { return *manager->get(id); }
    // Types of all events, in order.
    std::vector<Event> events();
    bool has_event(const std::string& type, const std::string& part = "");
    int events_of(const std::string& type);
    // What must hold at any time; empty when it does.
    std::vector<std::string> wrong();
    void report(FakeAgent& agent);
    boost::asio::io_context& io() { return io_; }
    metrics::Registry& metrics() { return *metrics_; }

  private:
    boost::asio::io_context io_{1};
    std::filesystem::path folder_;
    std::shared_ptr<bool> alive_;  // of the manager, for the agents that follow it
    std::unique_ptr<metrics::Registry> metrics_;
};

}  // namespace memtide::fm
