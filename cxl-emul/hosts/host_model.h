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

// A device as a host's slot holds it: a piece of a medium.
struct PluggedDevice {
    SerialNumber serial;
    std::shared_ptr<MemoryMedia> media;
    Bytes offset;
    Bytes size;
};

struct HostDelays {
    Delay online;
    Delay offline;
    Delay report;
};

// One emulated host without its network: the devices in its slots, and an agent that brings them online and
// takes them offline as it is told, each after its delay. As the host does it, memory is looked at before it
// is used and written to while it is. Time is handed in; nothing here does I/O. Not thread safe.
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
    // All memory is as after power-on.
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
    [[nodiscard]] std::optional<Use> use_of(SerialNumber serial) const;

  private:
    struct Slot {
        PluggedDevice device;
        Use use = Use::kFound;
        Time due;                 // of the two transitions
        std::uint64_t stamp = 0;  // what was written to it, while it is online
    };
    static bool in_use(const Slot& slot);
    bool step(Slot& slot, const Wanted& wanted, Time now);
    void note_change(SerialNumber serial);
    static bool is_dirty(const Slot& slot);
    [[nodiscard]] bool is_to_be_verified(const Wanted& wanted) const;
    void bring_online(Slot& slot, const Wanted& wanted);
    void check_stamp(const Slot& slot);
    [[nodiscard]] std::string_view state_of(const Wanted& wanted) const;
    [[nodiscard]] std::vector<SerialNumber> not_erased(const Wanted& wanted) const;
    [[nodiscard]] const Wanted* wanted_of(SerialNumber serial) const;

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
