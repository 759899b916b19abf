#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "cxl-emul/hosts/client_pool.h"
#include "cxl-emul/hosts/fleet_plan.h"
#include "cxl-emul/hosts/host.h"
#include "cxl-emul/hosts/ledger.h"
#include "cxl-emul/hosts/switch_life.h"

namespace memtide::emul {

// What the fleet as a whole is doing.
struct FleetCounts {
    std::size_t hosts = 0;
    std::size_t agents = 0;        // running
    std::size_t faulty_hosts = 0;  // with any fault
    std::size_t switches_off = 0;
    std::size_t bound = 0;    // devices, at all hosts
    std::size_t plugged = 0;  // of these, seen by their hosts
    std::size_t online = 0;   // of these, in use
    std::size_t wanted = 0;   // compositions the agents know of
};

// Emulated hosts and the switches they hang on, on one thread: a bind at a switch is seen by the host at
// once. All calls come from the executor's thread, which must be the only one.
//
//   auto fleet = Fleet::open(executor, options);
//   (*fleet)->start();     // then run the executor
//   ...
//   (*fleet)->stop();      // the executor runs out of work; only then may the fleet go
class Fleet {
  public:
    // Reads the agents' certificates and binds the switches' listeners: errors as plan_fleet(),
    // load_agent_credentials() and Switch::open().
    static Result<std::unique_ptr<Fleet>> open(boost::asio::any_io_executor executor,
                                               const FleetOptions& options);
    ~Fleet();

    // What goes over the switches' connections is told to it; before start().
    void capture(fmapi::SessionCapture& file);
    void start();
    void stop();

    // What was planned, with the ports that the switches got.
    [[nodiscard]] Topology topology() const;
    [[nodiscard]] const Ledger& ledger() const { return ledger_; }
    [[nodiscard]] FleetCounts counts() const;
    [[nodiscard]] const Host* host(const HostId& id) const;

    // kNotFound when there is none, kConflict while it has no power. Not to be kept over an await.
    [[nodiscard]] Result<Switch*> running_switch(const SwitchId& id) const;

    using Duration = std::optional<std::chrono::microseconds>;  // nullopt: until it is ended
    // kNotFound when there is no such host, switch or device; kConflict for a wrong certificate where none is
    // shown. A fault that is begun again lasts as long as the last time says.
    Result<> begin_fault(const HostId& host, HostFault fault, Duration lasts);
    Result<> end_fault(const HostId& host, HostFault fault);
    // kConflict while it is off already, or on.
    Result<> power_off(const SwitchId& id, Duration lasts);
    Result<> power_on(const SwitchId& id);
    enum class DeviceFault {
        kLinkDown,
        kEraseFails,
        kEraseDoesNothing,
        kWorn,     // says that most of its life is used, and that it needs maintenance
        kFailing,  // says that its data will be lost, and that it has to be replaced
    };
    Result<> begin_fault(const DeviceId& device, DeviceFault fault, Duration lasts);
    Result<> end_fault(const DeviceId& device, DeviceFault fault);
    // Everything that is wrong now, those of the options included.
    void heal();

    // Of one port of a switch, as hosts see it; names are those of the plan.
    void set_port_link(const SwitchId& id, std::uint8_t port, bool up);
    void set_port_plugged(const SwitchId& id, std::uint8_t port, bool plugged);
    [[nodiscard]] SwitchLife& life_of(const SwitchId& id) { return *switches_.at(id).life; }

  private:
    class Hotplug;
    class LdMailbox;
    struct SwitchPlace {
        std::unique_ptr<SwitchLife> life;
        bool changing = false;              // between on and off
        std::set<std::uint8_t> cables_out;  // ports whose cables are pulled or down
        std::vector<Host*> hosts;
    };
    struct DevicePlace {
        std::vector<SwitchPlace*> on;  // one for each head
        std::shared_ptr<MemoryMedia> media;
        bool link_down = false;
        bool worn = false;
        bool failing = false;
        std::uint64_t begun = 0;  // faults so far
    };

    Fleet(boost::asio::any_io_executor executor, const FleetOptions& options);
    Result<> build(const Topology& topology);
    Result<> build_hosts(const std::vector<HostId>& names);
    boost::asio::awaitable<void> turn_off(SwitchPlace& place, Duration lasts);
    boost::asio::awaitable<void> turn_on(SwitchPlace& place);
    void spawn(boost::asio::awaitable<void> coroutine);
    void later(Duration lasts, std::function<void()> what);
    void show_port(SwitchPlace& place, std::uint8_t port, bool there);
    void set_cable(const CascadeConfig& cable, bool there);
    void set_cables(SwitchPlace& place, bool there);
    [[nodiscard]] const PortConfig& end_of(const CascadeConfig& cable) const;
    void set_link(const DeviceId& id, DevicePlace& place, bool up);
    static void set_wear(const DeviceId& id, DevicePlace& place, DeviceFault fault, bool on);
    static void set_health(const DeviceId& id, const DevicePlace& place);

    boost::asio::any_io_executor executor_;
    FleetOptions options_;
    std::string name_;  // of the topology
    Ledger ledger_;
    ClientPool pool_;
    std::unordered_map<HostId, std::unique_ptr<Host>> hosts_;
    std::unordered_map<SwitchId, SwitchPlace> switches_;
    std::unordered_map<DeviceId, DevicePlace> devices_;
    std::vector<SwitchId> order_;  // of the plan
    std::unordered_map<SerialNumber, HostId> owners_;
    std::list<boost::asio::steady_timer> timers_;
    bool stopped_ = false;
};

}  // namespace memtide::emul
