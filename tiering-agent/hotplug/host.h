#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/hotplug/cxl_bus.h"
#include "tiering-agent/hotplug/holders.h"
#include "tiering-agent/hotplug/interruption.h"
#include "tiering-agent/hotplug/modules.h"
#include "tiering-agent/hotplug/plan.h"
#include "tiering-agent/hotplug/records.h"

namespace memtide::agent {

struct ActionResult {
    std::optional<Finding> error{};  // nothing: it worked, as far as one can tell before looking
    std::optional<std::vector<Holder>> holders{};  // nothing: not looked for this time
};

// Sees and changes the memory of this host. Blocks; used by one thread.
class Host {
  public:
    virtual ~Host() = default;
    // Details (dax devices, blocks) only of regions of memdevs with these serials, and of recorded ones.
    virtual Result<Seen> look(const std::vector<SerialNumber>& wanted) = 0;
    virtual ActionResult perform(const Action& action) = 0;
};

// Where sysfs has dax devices and their drivers.
inline constexpr std::string_view kDaxDevices = "sys/bus/dax/devices/";
inline constexpr std::string_view kDaxDrivers = "sys/bus/dax/drivers/";
// The names that a driver was told to take; the kernel forgets none by itself.
Result<> forget_dax_name(Files& files, const std::string& driver, const std::string& dax);

// Bytes in a memory block of this kernel: 128 MiB to 2 GiB on x86.
Result<Bytes> read_block_size(const Files& files);

struct HostParts {
    Files& files;
    CxlBus& bus;
    RegionRecords& records;
    ModuleLoader& modules;
    PageMover& mover;
    Interruption& interruption;
};

// The one that works on sysfs. What each part does to the kernel's files is in docs/agent.md.
class SysfsHost final : public Host {
  public:
    explicit SysfsHost(HostParts parts) : parts_(parts) {}

    Result<Seen> look(const std::vector<SerialNumber>& wanted) override;
    ActionResult perform(const Action& action) override;

    // An attempt to offline blocks gives up after this long, so that other compositions get their turn.
    static constexpr std::chrono::milliseconds kOfflineSlice{3'000};

  private:
    void add_details(Region& region, Bytes block_size) const;
    [[nodiscard]] std::vector<MemoryBlock> blocks_in(AddressRange range, Bytes block_size) const;
    [[nodiscard]] MemoryBlock read_block(std::uint64_t index) const;

    void let_autoprobe_go();
    Result<> perform_quietly(const Action& action, const std::function<Result<>()>& step);
    ActionResult read_back_region(const Action& action);
    Result<ReadBack> read_samples(const Action& action);
    Result<> enter_device_dax(const std::string& dax);

    Result<> create_region(const Action& action);
    Result<> configure_region(const Action& action);
    Result<> reserve_capacity(const std::string& name, Bytes size);
    Result<> set_targets(const Action& action);
    Result<> enable_region(const Action& action);
    ActionResult await_dax(const Action& action);
    ActionResult bind_kmem(const Action& action);
    ActionResult leave_device_dax(const std::string& dax, Bytes size, bool force);
    Result<> online_blocks(const Action& action);
    ActionResult rezone_blocks(const Action& action);
    ActionResult offline_blocks(const Action& action);
    ActionResult explain_held(const Action& action, const std::vector<std::uint64_t>& blocks,
                              const Error& error, bool move);
    Result<> offline_block(std::uint64_t index, std::chrono::milliseconds limit);
    Result<> unbind_kmem(const Action& action);
    ActionResult destroy_region(const Action& action);

    HostParts parts_;
    std::map<RegionId, std::chrono::steady_clock::time_point> last_explained_;
};

}  // namespace memtide::agent
