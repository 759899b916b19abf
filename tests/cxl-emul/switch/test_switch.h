#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cxl-emul/switch/switch_thread.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul::test {

// A folder that is gone at the end of the test.
class TemporaryFolder {
  public:
    explicit TemporaryFolder(const std::string& parent = "/tmp");
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Emulated times of a test switch, and what comes of them.
struct Times {
    std::string bind = "0ms";
    std::string unbind = "0ms";
    std::string sanitize = "0ms";
    std::string effect = "erases";  // of a sanitize of mld0
};

// Ports: 0 host0, 1 host1, 2 mld0, 3 sld0, 4 empty. VCS 0 and 1, of host0 and host1, with four vPPBs each.
// mld0: serial 4d54000100000000h, 1 GiB in LDs of 256 MiB, 256 MiB, none, none. sld0: serial 50h, 256 MiB.
// Listens on TCP (any port) and on FOLDER/switch0.sock; media in the folder.
std::string test_topology(const std::string& folder, const Times& times = {});

// That switch, running on a thread.
class TestSwitch {
  public:
    explicit TestSwitch(const Times& times = {}, std::shared_ptr<HotplugBackend> hotplug = no_hotplug(),
                        ConnectionLimits limits = {});

    [[nodiscard]] const std::string& tcp() const { return running_->addresses().at(0); }
    [[nodiscard]] const std::string& unix_socket() const { return running_->addresses().at(1); }
    [[nodiscard]] const std::string& folder() const { return folder_.path(); }
    [[nodiscard]] std::string media_file(const std::string& device) const;
    [[nodiscard]] SwitchThread& thread() { return *running_; }
    // Off and on again.
    void restart();

  private:
    // In memory, as media are by default: a busy disk would decide how long erasing takes.
    TemporaryFolder folder_{"/dev/shm"};
    Topology topology_;
    std::shared_ptr<HotplugBackend> hotplug_;
    ConnectionLimits limits_;
    std::optional<SwitchThread> running_;
};

// Content of media files.
void write_file(const std::string& path, std::uint64_t offset, const std::string& text);
std::string read_file(const std::string& path, std::uint64_t offset, std::size_t length);
std::uint64_t allocated_bytes(const std::string& path);

}  // namespace memtide::emul::test
