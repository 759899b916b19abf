#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/fabric.h"

namespace memtide::fm {

// What a switch answered when it was read as a whole.
struct SwitchReading {
    std::vector<Port> ports;
    std::vector<Vcs> vcss;
};

// What a device behind a port answered.
struct LdReading {
    LdId id;
    SerialNumber serial;
    Bytes size;
};
struct DeviceReading {
    std::uint8_t port = 0;
    DeviceKind kind = DeviceKind::kMld;
    SerialNumber serial;
    Bytes size;
    Bytes granularity;
    std::vector<LdReading> lds;
};

// "mld-4d54000100000000"; a device without a serial number is named after its switch and port.
DeviceId device_id(DeviceKind kind, SerialNumber serial, const SwitchId& switch_id, std::uint8_t port);

// The fabric as last seen, and which composition has a claim on which part of it. Pure bookkeeping: no I/O.
// An LD or vPPB has at most one claim, which is what keeps memory from being given to two hosts.
class Inventory {
  public:
    // --- Set-up ---
    void add_switch(SwitchId id, std::string address);
    void add_host(HostId id, std::vector<HostAttachment> attach);

    // --- What the switch says ---
    // Replaces ports and virtual switches; claims stay. Memory that turns out to be bound is not clean.
    void apply(const SwitchId& id, const SwitchReading& reading);
    // The same for the vPPBs of one virtual switch, after an operation on one of them.
    void apply(const SwitchId& id, std::uint8_t vcs, const std::vector<Vppb>& vppbs);
    // Fails with kAlreadyExists when a device with that serial number is present on another port.
    Result<DeviceId> apply(const SwitchId& id, const DeviceReading& reading);
    // Nothing hangs on the port any more.
    void device_gone(const SwitchId& id, std::uint8_t port);
    void switch_up(const SwitchId& id, Time now);
    void switch_down(const SwitchId& id, std::string error);

    // --- What the manager does ---
    // Gives LD, vPPB and the LDs of the carve to the composition; repeating a claim is fine. Fails with
    // kConflict when one of them belongs to another composition; then nothing has changed. Parts that the
    // inventory has not seen (yet) are claimed when they appear.
    Result<> claim(const Composition& composition);
    // Takes back every claim of it.
    void release(const CompositionId& id);
    // The carve is done: LDs other than its own are no longer held.
    void carved(const CompositionId& id);
    // An LD has another size now; it is not clean then.
    void resize(const LdAddress& ld, Bytes size, SerialNumber serial);
    void set_clean(const LdAddress& ld, bool clean);
    void set_quarantined(const LdAddress& ld, bool quarantined);
    // Every LD of the device loses its clean mark: its memory may have moved, or somebody else had it.
    void forget_clean(const DeviceId& device);
    // The same for all devices of a switch that nobody watched for a while.
    void forget_clean(const SwitchId& id);

    // --- Looking ---
    [[nodiscard]] const std::map<SwitchId, Switch>& switches() const { return switches_; }
    [[nodiscard]] const std::map<DeviceId, Device>& devices() const { return devices_; }
    [[nodiscard]] const std::map<HostId, Host>& hosts() const { return hosts_; }
    Host* host(const HostId& id);
    [[nodiscard]] const Host* host(const HostId& id) const;
    [[nodiscard]] const Switch* find_switch(const SwitchId& id) const;
    [[nodiscard]] const Device* device(const DeviceId& id) const;
    [[nodiscard]] const Device* device_at(const SwitchId& id, std::uint8_t port) const;
    [[nodiscard]] const LogicalDevice* ld(const LdAddress& address) const;
    [[nodiscard]] const Vppb* vppb(const VppbAddress& address) const;
    // The host whose virtual switch that is; nullptr when none is configured.
    [[nodiscard]] const Host* host_at(const SwitchId& id, std::uint8_t vcs) const;
    [[nodiscard]] Pool pool() const;

  private:
    struct Claim {
        LdAddress memory;
        VppbAddress where;
        std::vector<LdSize> planned;
    };
    Vppb* find_vppb(const VppbAddress& address);
    LogicalDevice* find_ld(const LdAddress& address);
    LogicalDevice* bound_ld(const SwitchId& id, const Vppb& vppb);
    void rebind(const SwitchId& id);
    void settle(LogicalDevice& ld, const SwitchId& switch_id) const;
    void mark(const CompositionId& id, const Claim& claim);
    [[nodiscard]] Result<> check_claim(const CompositionId& id, const Claim& claim) const;

    std::map<SwitchId, Switch> switches_;
    std::map<DeviceId, Device> devices_;
    std::map<HostId, Host> hosts_;
    std::map<HostAttachment, HostId> host_at_;
    std::map<std::pair<SwitchId, std::uint8_t>, DeviceId> at_port_;
    std::map<CompositionId, Claim> claims_;
};

// How much of the device could be one composition now; 0 when it has no LD left for one.
Bytes largest_free(const Device& device);
// Memory of an MLD that no LD has and no carve has taken.
Bytes unallocated(const Device& device);

// What is wrong, in sentences; empty when all holds: no LD claimed or bound twice, every LD and vPPB of a
// composition is its own, LD sizes within their device, capacity adds up.
std::vector<std::string> violations(const Inventory& inventory, const std::vector<Composition>& compositions);

}  // namespace memtide::fm
