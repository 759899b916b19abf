#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "cxl-emul/hosts/capacity_driver.h"
#include "cxl-emul/hosts/delay.h"
#include "cxl-emul/hosts/faults.h"
#include "cxl-emul/hosts/ledger.h"
#include "cxl-emul/hosts/memory_media.h"

namespace memtide::emul {

// What the manager wants of one region of a composition (docs/rest.md, the agent channel).
struct Wanted {
    CompositionId composition;
    std::uint32_t region = 0;
    std::vector<SerialNumber> serials;  // of the devices that it is made of
    Bytes size;
    bool online = true;
    std::uint32_t samples = 0;  // to read back before its first use; 0: not to be verified
};
struct WantedState {
    std::uint64_t revision = 0;
    std::vector<Wanted> regions;
};

// A device as a host's slot holds it: a piece of a medium, or a dynamic capacity device, whose memory are the
// extents that the host accepts.
struct PluggedDevice {
    SerialNumber serial;
    std::shared_ptr<MemoryMedia> media;
    Bytes offset;
    Bytes size;
    std::shared_ptr<Mailbox> mailbox{};  // of a DCD's LD; null otherwise
};

struct HostDelays {
    Delay online;
    Delay offline;
    Delay report;
};

// One emulated host without its network: the devices in its slots, and an agent that brings them online and
// takes them offline as it is told, each after its delay. As the host does it, memory is looked at before it
// is used and written to while it is. Time is handed in; nothing here does I/O beside what it sends to the
// mailboxes of dynamic capacity devices. Not thread safe.
//
// Of those it accepts what it is offered, at once. Memory that is asked back and not in use it gives back at
// once, and all that a device has when the agent has taken it offline.
class HostModel {
  public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;
    enum class Use { kFound, kGoingOnline, kOnline, kGoingOffline, kOffline, kNotErased };

    HostModel(HostId name, HostDelays delays, std::uint64_t seed, Ledger& ledger);

    [[nodiscard]] const HostId& name() const { return name_; }
    [[nodiscard]] HostFaults& faults() { return faults_; }
    [[nodiscard]] const HostFaults& faults() const { return faults_; }

    // The hardware's side. A device that comes fresh out of the pool must be empty; one whose link was down
    // may hold what this host wrote. One that is taken away while it is online is a surprise or a violation;
    // one whose link went down is neither.
    enum class Arrival { kFresh, kLinkUp };
    void plug(PluggedDevice device, Arrival arrival);
    enum class Removal { kAsked, kSurprise, kLinkDown };
    void unplug(SerialNumber serial, Removal how);
    // A dynamic capacity device has something to say.
    void interrupt(SerialNumber serial);
    // All memory is as after power-on; what was accepted still is.
    void reboot();

    // The agent's side.
    void want(WantedState wanted);
    // Does what is due at `now`. True when there is something new to report.
    bool advance(Time now);
    // Whether the manager waits for what would be reported; what it does not wait for may wait for that.
    [[nodiscard]] bool has_news() const { return news_; }
    // When advance() has something to do next.
    [[nodiscard]] std::optional<Time> next_due() const;
    // Makes advance() say that there is something to report: the manager may have forgotten.
    void report_again() { changed_ = news_ = true; }
    // The body of PUT observed.
    [[nodiscard]] std::string observed() const;
    // What is true now is on its way: no news any more.
    void told() { news_ = false; }
    [[nodiscard]] std::chrono::microseconds draw_report_delay() { return delays_.report.draw(random_); }

    [[nodiscard]] std::string boot_id() const;
    [[nodiscard]] std::uint64_t revision() const { return wanted_.revision; }
    [[nodiscard]] std::size_t wanted_count() const { return wanted_.regions.size(); }
    [[nodiscard]] std::size_t plugged_count() const { return devices_.size(); }
    [[nodiscard]] std::size_t online_count() const;
    // As far as the last of its memory is; a device without any is found.
    [[nodiscard]] std::optional<Use> use_of(SerialNumber serial) const;
    // What the host has of the device's medium, ascending.
    [[nodiscard]] std::vector<ByteRange> memory_of(SerialNumber serial) const;

  private:
    // Memory that is used as a whole: all that a device has, or an extent.
    struct Piece {
        ByteRange range;                           // of the medium
        std::optional<fmapi::DcTag> shared_tag{};  // others may write there as well
        Use use = Use::kFound;
        Time due{};               // of the two transitions
        std::uint64_t stamp = 0;  // what was written to it, while it is online
        bool fresh = false;       // an extent that this host has never used
    };
    struct Slot {
        PluggedDevice device;
        std::vector<Piece> pieces{};
        std::optional<CapacityDriver> driver{};  // of a DCD
    };
    static bool in_use(const Piece& piece);
    static bool in_use(const Slot& slot);
    static Bytes size_of(const Slot& slot);
    static Use use_of(const Slot& slot);
    bool step(Slot& slot, Piece& piece, const Wanted& wanted, Time now);
    bool step(Slot& slot, const Wanted& wanted, Time now);
    void note_change(SerialNumber serial);
    [[nodiscard]] bool is_off() const { return faults_.has(HostFault::kReboot); }
    static std::optional<Bytes> first_written(const Slot& slot, const Piece& piece);
    static std::optional<Bytes> first_kept(const Slot& slot, const Piece& piece);
    [[nodiscard]] bool is_to_be_verified(const Piece& piece, const Wanted& wanted) const;
    void bring_online(Slot& slot, Piece& piece, const Wanted& wanted);
    void look_at(const Slot& slot, const Piece& piece);
    static void write_stamp(const Slot& slot, const Piece& piece);
    void check_stamps(const Slot& slot);
    void check_stamp(const Slot& slot, const Piece& piece);
    [[nodiscard]] std::string_view state_of(const Wanted& wanted) const;
    [[nodiscard]] bool is_online(const Wanted& wanted) const;
    [[nodiscard]] Bytes online_bytes(const Wanted& wanted) const;
    [[nodiscard]] std::vector<SerialNumber> not_erased(const Wanted& wanted) const;
    [[nodiscard]] const Wanted* wanted_of(SerialNumber serial) const;
    [[nodiscard]] std::vector<const Slot*> slots_of(const Wanted& wanted) const;

    // Dynamic capacity (host_capacity.cpp).
    bool serve(Slot& slot);
    bool see_extents(Slot& slot, Arrival arrival, bool forced);
    void lose(Slot& slot, const RangeSet& lost, bool forced);
    void gain(Slot& slot, const fmapi::DcExtent& extent, Arrival arrival);
    void give_back_unused(Slot& slot, const RangeSet& asked);
    void give_back(Slot& slot, const std::vector<ByteRange>& memory);
    [[nodiscard]] bool has_enough(const Wanted& wanted) const;

    HostId name_;
    HostDelays delays_;
    Random random_;
    Ledger& ledger_;
    HostFaults faults_;
    std::map<SerialNumber, Slot> devices_;
    WantedState wanted_;
    std::set<std::pair<CompositionId, std::uint32_t>> used_;  // regions that were online since the boot
    std::uint64_t boots_ = 1;
    std::uint64_t stamps_ = 0;
    bool changed_ = true;
    bool news_ = true;
};

}  // namespace memtide::emul
