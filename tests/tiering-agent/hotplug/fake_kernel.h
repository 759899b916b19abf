#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/sysfs/files.h"
#include "tiering-agent/hotplug/cxl_bus.h"
#include "tiering-agent/hotplug/modules.h"

namespace memtide::agent {

// A temporary folder that is gone with the object.
class ScratchFolder {
  public:
    ScratchFolder();
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Thrown instead of a write: the agent was killed there.
struct Killed {};

// Behaves as Linux 6.12 does towards the files that the agent reads and writes: a real folder tree shows the
// state, and writes change it as the kernel would, with its refusals. Only one CXL window, decoder0.0.
class FakeKernel final : public Files, public CxlBus {
  public:
    enum class AutoOnline { kOffline, kKernelZone, kMovable };
    enum class Zone { kNone, kNormal, kMovable };
    struct Block {
        bool online = false;
        Zone zone = Zone::kNone;
        int busy = 0;  // so many attempts to offline it fail with EBUSY; below 0: all
    };
    struct Device {
        SerialNumber serial;
        Bytes size;
        std::string decoder;
        std::string mode = "pmem";
        std::uint64_t reserved = 0;
        bool has_endpoint = true;
    };
    struct FakeRegion {
        std::uint64_t size = 0;
        std::uint64_t start = 0;
        std::uint64_t ways = 0;
        std::uint64_t granularity = 0;
        std::vector<std::string> targets;  // endpoint decoders; empty where there is none (any more)
        bool committed = false;
        bool enabled = false;
        std::string dax_driver;
        [[nodiscard]] bool has_target(const std::string& decoder) const {
            return std::ranges::find(targets, decoder) != targets.end();
        }
        bool kmem_stuck = false;  // unbound with blocks online: its addresses are lost until a restart
    };

    explicit FakeKernel(std::string root, Bytes block_size = mebibytes(128));

    // --- The world outside ---
    void plug(const std::string& memdev, SerialNumber serial, Bytes size = mebibytes(256));
    void pull(const std::string& memdev);  // without asking
    Block& block(std::uint64_t index) { return blocks_.at(index); }
    void sync();  // brings the tree up to date; needed after changes through references

    std::map<std::string, Device> devices;
    std::map<std::string, FakeRegion> regions;
    AutoOnline auto_online = AutoOnline::kOffline;
    bool dax_binds_to_kmem = true;  // else a dax device starts without a driver
    bool has_kmem = true;
    bool autoprobe = true;               // of the dax bus
    std::set<std::string> devdax_names;  // that device_dax was told to take
    // What the memory of a dax device holds when it is opened; without an entry it is all zeros.
    std::map<std::string, std::vector<std::pair<std::uint64_t, std::string>>> contents;
    std::uint64_t window_start = 0x3d0000000;
    std::map<std::string, std::pair<ErrorCode, int>> faults;  // path suffix -> error, how often
    int writes_until_killed = -1;                             // below 0: never
    bool killed_after_the_write = false;
    std::vector<std::string> writes;  // "path=text", all of them
    [[nodiscard]] const std::map<std::uint64_t, Block>& blocks() const { return blocks_; }
    [[nodiscard]] std::set<std::string> names_touched() const;

    // --- What the agent uses ---
    Result<> write(const std::string& path, std::string_view text) override;
    Result<CxlView> enumerate() override;
    Result<std::string> next_region(const std::string& window) override;
    Result<> create_ram_region(const std::string& window, const std::string& name) override;

  private:
    Result<> apply(const std::string& path, const std::string& text);
    Result<> write_region(const std::string& name, const std::string& attribute, const std::string& text);
    Result<> write_decoder(const std::string& name, const std::string& attribute, const std::string& text);
    Result<> write_block(std::uint64_t index, const std::string& text);
    Result<> name_devdax(bool add, const std::string& dax);
    void show_memory(const std::string& dax, std::uint64_t size) const;
    Result<> bind_dax(const std::string& dax, const std::string& driver);
    Result<> unbind_dax(const std::string& dax, const std::string& driver);
    void release_region(FakeRegion& region);
    void add_blocks(const FakeRegion& region);
    [[nodiscard]] std::uint64_t free_address() const;
    FakeRegion* region_of_dax(const std::string& dax);
    [[nodiscard]] std::map<std::string, std::string> tree() const;

    Bytes block_size_;
    std::map<std::uint64_t, Block> blocks_;
    std::vector<AddressRange> stuck_;
    std::map<std::string, std::string> shown_;  // what sync() wrote last
    int next_endpoint_ = 3;
};

class FakeModules final : public ModuleLoader {
  public:
    explicit FakeModules(std::function<Result<>(const std::string&)> load) : load_(std::move(load)) {}
    Result<> load(const std::string& name) override { return load_(name); }

  private:
    std::function<Result<>(const std::string&)> load_;
};

}  // namespace memtide::agent
