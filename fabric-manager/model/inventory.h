#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/fabric.h"
#include "fabric-manager/model/ld_offers.h"

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
    Bytes size;  // of a dynamic capacity device: what its host has accepted
    // Of a dynamic capacity device: whether its host has yet to accept something; nullopt when it does not
    // tell.
    std::optional<bool> offered{};
};
// What a device with several heads says of itself, the same through each of them.
struct MultiHeadedReading {
    std::uint8_t heads = 0;
    std::uint8_t head = 0;                              // the one that was asked
    std::vector<std::optional<std::uint8_t>> ld_heads;  // by LD id; nullopt: the LD has no head
    friend bool operator==(const MultiHeadedReading&, const MultiHeadedReading&) = default;
};
struct DeviceReading {
    std::uint8_t port = 0;
    DeviceKind kind = DeviceKind::kMld;
    SerialNumber serial;
    Bytes size;
    Bytes granularity;
    std::vector<LdReading> lds;
    std::optional<MultiHeadedReading> multi_headed{};
};

// "mld-4d54000100000000", "dcd-...", "sld-..."; a device without a serial number is named after its switch
// and port.
DeviceId device_id(DeviceKind kind, SerialNumber serial, const SwitchId& switch_id, std::uint8_t port);

// The fabric as last seen, and which composition has a claim on which part of it. Pure bookkeeping: no I/O.
// An LD or vPPB has at most one claim, which is what keeps memory from being given to two hosts.
class Inventory {
  public:
    Inventory() = default;
    Inventory(Inventory&&) = default;  // not copied: it points into itself
    Inventory& operator=(Inventory&&) = default;

    // --- Set-up ---
    void add_switch(SwitchId id, std::string address);
    void add_host(HostId id, std::vector<HostAttachment> attach);

    // --- What the switch says ---
    // Replaces ports and virtual switches; claims stay. Memory that turns out to be bound is not clean.
    void apply(const SwitchId& id, const SwitchReading& reading);
    // The same for the vPPBs of one virtual switch, after an operation on one of them.
    void apply(const SwitchId& id, std::uint8_t vcs, const std::vector<Vppb>& vppbs);
    // A device is at one port, or at several with a head of its own at each. Fails with kAlreadyExists when a
    // device with that serial number is present on another port and the two are not heads of one device, and
    // with kProtocol when they are and contradict each other; then nothing of the other has changed.
    Result<DeviceId> apply(const SwitchId& id, const DeviceReading& reading);
    // Nothing hangs on the port any more.
    void device_gone(const SwitchId& id, std::uint8_t port);
    void switch_up(const SwitchId& id, Time now);
    void switch_down(const SwitchId& id, std::string error);
    void switch_speaks(const SwitchId& id, std::string dialect, bool detected, std::size_t in_flight);

    // --- What the manager does ---
    // Gives LD, vPPB and the LDs of the carve to the part; repeating a claim is fine. Fails with kConflict
    // when one of them belongs to another part; then nothing has changed. What the inventory has not seen
    // (yet) is claimed when it appears.
    Result<> claim(const Composition& composition, const Part& part);
    // The same for all parts that have not ended: all or none.
    Result<> claim(const Composition& composition);
    // Claims for the part what nobody has a claim on of what it had: while it is not durable that it gives
    // its LDs and its vPPB up, some of them may be handed on, and nobody else may get the others.
    void keep(const Composition& composition, const Part& part);
    // Takes back every claim of the part, or of all parts.
    void release(const PartId& id);
    void release(const CompositionId& id);
    // The carve is done: LDs other than its own are no longer held.
    void carved(const PartId& id);
    // An LD has another size now; it is not clean then. Of a dynamic capacity device: that much is offered.
    void resize(const LdAddress& ld, Bytes size, SerialNumber serial);
    // The host of an LD with dynamic capacity has accepted that much, of what its owner is to get.
    void accepted(const LdAddress& ld, Bytes size);
    // Its device refused to make an LD of that size of all that it has free where this LD is reached.
    // Remembered until an LD of the device has another size, the device was gone, or nobody watched it.
    void note_refused_carve(const LdAddress& ld, Bytes size);
    void set_clean(const LdAddress& ld, bool clean);
    // Keeps new placements away from it for this reason; empty: no longer.
    void set_held(const DeviceId& device, std::string why);
    void set_held(const SwitchId& id, std::string why);
    // A device that calls its state critical gets nothing new.
    void set_health(const DeviceId& device, DeviceHealth health);
    void set_quarantined(const LdAddress& ld, bool quarantined);
    // Every LD of the device loses its clean mark: its memory may have moved, or somebody else had it.
    void forget_clean(const DeviceId& device);
    // The same for all devices of a switch that nobody watched for a while; what they refused is forgotten
    // too.
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
    // Devices that are present behind the switch, by port; each once.
    [[nodiscard]] std::vector<const Device*> devices_behind(const SwitchId& id) const;
    // Its ports that show a device.
    [[nodiscard]] std::vector<std::uint8_t> ports_with_devices(const SwitchId& id) const;
    // Whether the port shows the device and hosts reach that LD of it there.
    [[nodiscard]] bool shows(const SwitchId& id, std::uint8_t port, const LdAddress& memory) const;
    // What a vPPB of the switch is bound to; nullptr when that is nothing that is known, or an LD that is not
    // reached there.
    [[nodiscard]] const LogicalDevice* bound_to(const SwitchId& id, const Vppb& vppb) const;
    // Where commands about the LD go, the switch and the port; nullopt while no port leads to it.
    [[nodiscard]] std::optional<std::pair<SwitchId, std::uint8_t>> way_to(const LdAddress& memory) const;
    [[nodiscard]] Pool pool() const;
    // The same for one device; kept until something of the device changes.
    [[nodiscard]] const PoolDevice& sums(const Device& device) const;
    // The same for what it offers through this head (nullptr for a device with one).
    [[nodiscard]] const LdOffers& offers(const Device& device, const Head* through) const;
    // Of all devices that are present; looks only at those that changed since it was asked last.
    struct Totals {
        Bytes capacity;
        Bytes free;
    };
    [[nodiscard]] Totals totals() const;

    // What was given to a part.
    struct Claim {
        LdAddress memory;
        VppbAddress where;
        std::vector<LdSize> planned;
        Bytes size;
        HostId host;
        std::optional<std::string> tenant;
    };
    [[nodiscard]] const Claim* claim_of(const PartId& id) const;
    [[nodiscard]] std::vector<const Claim*> claims_of(const HostId& host) const;

  private:
    Vppb* find_vppb(const VppbAddress& address);
    LogicalDevice* find_ld(const LdAddress& address);
    struct Binding {
        const Device* device = nullptr;
        const LogicalDevice* ld = nullptr;
    };
    [[nodiscard]] Binding binding_of(const SwitchId& id, const Vppb& vppb) const;
    LogicalDevice* bound_ld(const SwitchId& id, const Vppb& vppb);
    [[nodiscard]] std::optional<Error> contradiction(const SwitchId& id, const DeviceReading& reading,
                                                     const Device& known) const;
    void attach_head(Device& device, const SwitchId& id, const DeviceReading& reading);
    void read_lds(Device& device, const DeviceReading& reading);
    void forget_sums(const Device& device);
    void forget_sums(const SwitchId& id);
    // Of the devices at these ports.
    void rebind(const SwitchId& id, std::uint8_t first = 0, std::uint8_t last = 255);
    void settle(LogicalDevice& ld) const;
    void settle_offer(LogicalDevice& ld) const;
    void mark(const PartId& id, const Claim& claim);
    static Claim claim_for(const Composition& composition, const Part& part);
    const Claim& enter(const PartId& id, Claim claim);
    [[nodiscard]] Result<> check_claim(const PartId& id, const Claim& claim) const;
    [[nodiscard]] Result<> check_unseen(const PartId& id, const Claim& claim) const;

    std::map<SwitchId, Switch> switches_;
    std::map<DeviceId, Device> devices_;
    std::map<HostId, Host> hosts_;
    std::map<HostAttachment, HostId> host_at_;
    std::map<std::pair<SwitchId, std::uint8_t>, Device*> at_port_;  // in devices_, where nothing is erased
    std::map<PartId, Claim> claims_;
    std::map<VppbAddress, PartId> claims_at_;        // the same by place,
    std::map<LdAddress, PartId> claims_on_;          // by memory
    std::map<HostId, std::set<PartId>> claims_for_;  // and by host
    // Sums of each device, of the changed ones as they were, and the totals of just these.
    struct Sums {
        PoolDevice device;
        std::vector<LdOffers> offers;  // by head
        Totals counted;
    };
    const Sums& known_sums(const Device& device) const;
    mutable std::unordered_map<const Device*, Sums> sums_;
    mutable std::unordered_set<const Device*> changed_;
    mutable Totals totals_;
};

// How much of the device could be one part of a composition now, through this head of a multi-headed one
// (nullptr: through the best); 0 when it has no LD left for one.
Bytes largest_free(const Device& device, const Head* through = nullptr);
// The smallest size that the device is known to refuse to carve now, through this head.
std::optional<Bytes> refused_carve(const Device& device, const Head* through = nullptr);
// The largest LD that could be carved of an MLD through this head, as far as it is known.
Bytes largest_carve(const Device& device, const Head* through = nullptr);
// Memory of an MLD that no LD has and no carve has taken.
Bytes unallocated(const Device& device);

// What is wrong, in sentences; empty when all holds: no LD claimed or bound twice, every LD and vPPB of a
// part is its own, LD sizes within their device, capacity adds up.
std::vector<std::string> violations(const Inventory& inventory, const std::vector<Composition>& compositions);

}  // namespace memtide::fm
