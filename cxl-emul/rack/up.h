#pragma once

#include <cstdint>
#include <string>

#include "cxl-emul/faults/scenario_options.h"

namespace memtide::emul {

struct UpOptions {
    std::string topology;
    std::string run_folder;  // empty: the default of the topology
    std::string manager;     // loopback address; empty: guests have no network
    bool agent = false;
    std::string agent_certs;  // folder of `certs init`; empty: agents speak plain HTTP
    bool no_kvm = false;
    std::string kernel_arguments;
    std::uint64_t timeout_seconds = 180;
    ScenarioOptions scenario;
    std::string pcap;           // file; empty: none
    int while_process = 0;      // pid; 0: until `rack down`
    bool check_config = false;  // only check the topology
};

// `rack up`: checks what is needed, starts the supervisor as a daemon, and shows the hosts boot until all are
// ready. When they do not get ready, says why and takes the rack down again. Gives the exit code.
int run_up(const UpOptions& options);

}  // namespace memtide::emul
