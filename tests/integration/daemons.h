#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/process/child.h"
#include "tests/integration/temp_folder.h"

namespace memtide::test {

// A daemon of this build as a child process, with what it prints in a file. It is killed when this goes.
class Daemon {
  public:
    // Starts it and waits until it has printed a line with `ready`. Throws std::runtime_error with what it
    // printed when it ends or is silent for 60 s.
    Daemon(std::vector<std::string> argv, std::string output_file, const std::string& ready);

    void kill();                // SIGKILL, and waits for the end
    process::Exit terminate();  // SIGTERM, and waits for the end
    [[nodiscard]] pid_t pid() const { return child_.pid(); }
    [[nodiscard]] std::string output() const;
    process::Child& child() { return child_; }

  private:
    std::string output_file_;
    process::Child child_;
};

struct SwitchOptions {
    std::chrono::milliseconds bind_time{0};
    std::chrono::milliseconds unbind_time{0};
    std::chrono::milliseconds sanitize_time{0};
    int hosts = 2;
    int devices = 1;
    // Each device is an MLD of 256 MiB LDs.
    int lds = 4;
};

// The topology file of a switch "switch0" that listens on FOLDER/switch0.sock: hosts host0, host1, ... at
// ports 0, 1,
// ... with a VCS of 8 vPPBs each, then the devices mld0, mld1, ...
std::string topology_yaml(const TempFolder& folder, const SwitchOptions& options);

struct ManagerOptions {
    int hosts = 2;
    std::string timing{};  // additional members of the `timing` section, "a: 1s, b: 2s"
    std::string limits{};
    std::string log_level = "info";
    std::string more{};  // further sections, as lines
};

std::string manager_yaml(const TempFolder& folder, const ManagerOptions& options);

// Where the manager of manager_yaml() listens besides a TCP port of its own choice; the same after a restart.
std::string manager_url(const TempFolder& folder);
std::string switch_address(const TempFolder& folder);

// Each writes its configuration to the folder, and starts the program of this build.
Daemon start_switch(const TempFolder& folder, const SwitchOptions& options = {});
Daemon start_manager(const TempFolder& folder, const ManagerOptions& options = {});

// `memtide-cxl-emul hosts`, its switches and its control socket in the folder.
struct FleetOptions {
    std::string manager{};  // empty: manager_url()
    int hosts = 64;
    int switches = 4;
    int devices = 2;                   // behind each switch: MLDs of 16 LDs of 256 MiB
    std::vector<std::string> options;  // further ones
};
Daemon start_fleet(const TempFolder& folder, const FleetOptions& options);
std::string fleet_control(const TempFolder& folder);
// A manager with the configuration that start_fleet() wrote; `more` is YAML behind it.
Daemon start_fleet_manager(const TempFolder& folder, const std::string& more = {});

// The manager's TCP port, out of its ready line.
std::uint16_t tcp_port(const Daemon& manager);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

}  // namespace memtide::test
