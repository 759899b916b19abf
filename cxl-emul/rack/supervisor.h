#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "cxl-emul/faults/scenario.h"
#include "cxl-emul/qemu/command_line.h"
#include "cxl-emul/qemu/guest_image.h"
#include "cxl-emul/rack/run_folder.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// Stands for the host's name in the words of RackOptions::agent.
inline constexpr std::string_view kHostInAgentCommand = "{host}";

struct RackOptions {
    Topology topology;
    std::string topology_path;
    std::map<std::string, GuestMaterial> materials;  // by HostConfig::kernel
    std::string program;                             // this program's own path
    std::string manager;                             // "127.0.0.1:8080"; empty: guests have no network
    // Empty: none; the host's name stands for kHostInAgentCommand, and --host is added.
    std::vector<std::string> agent;
    std::string manager_url = kManagerUrlInGuest;  // as guests see it
    std::string kernel_arguments;
    bool kvm_allowed = true;
    std::optional<Scenario> scenario;  // begins when all hosts are ready
    double scenario_speed = 1;
    std::string pcap;       // absolute path of the capture of the switches' connections; empty: none
    int while_process = 0;  // pid; the rack goes down when that process ends; 0: no such process
};

// The process behind a running rack: its switches, its QEMU hosts, its control socket. Runs until it is told
// to stop by the control socket, SIGTERM or SIGINT; then every host is shut down. Called in a process of its
// own with one thread; the children die with it, whatever way it ends.
//
// `opened` is called once: with success when the switches listen and the control socket answers, hosts then
// boot; or with why not, and nothing is left behind then. Gives the process's exit code.
int run_supervisor(RackOptions options, RunFolder folder, const std::function<void(const Result<>&)>& opened);

}  // namespace memtide::emul
