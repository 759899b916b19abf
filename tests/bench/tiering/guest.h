#pragma once

#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"

namespace memtide::bench {

// Who moves pages while a load runs.
enum class System {
    kNone,    // nobody
    kKernel,  // the kernel: NUMA balancing in mode 2 (tiering) and demotion
    kDamon,   // the kernel's data access monitor with its schemes migrate_hot and migrate_cold, at 200 MiB a
              // second
    kDamo,    // the same by its user space tool, where that is installed
    kAgent,   // a program that is started first; the kernel moves nothing
};
std::string_view to_string(System system);

// What starts damo and stays in the foreground, so that it is an agent: what is accessed on node 1 goes to
// node 0, what is not on node 0 goes to node 1.
inline constexpr std::string_view kDamoProgram = "/usr/bin/damo";
std::string damo_command();

struct GuestPlan {
    Bytes fast = mebibytes(384);  // node 0, with two processors
    Bytes slow = mebibytes(768);  // node 1
    unsigned companion_ms = 10;   // how often its processors switch address spaces at least; 0: as they do
    std::vector<std::string> kernel_arguments{};
    std::string kernel{};  // "7.3" (docs/topologies.md); empty: the usual one
    bool consent = false;  // the load is one that lets itself be watched (`memtide agent run`)
};

// Why no guest can run here (needs root, no guest kernel), or nothing.
std::string why_no_guest();

// A command that is run in the guest, where this machine's files are.
struct AgentCommand {
    std::string shell;  // "build/bin/memtide-tiering-agent --config FILE"
};

// Words as a shell reads them, quoted.
std::string shell_words(const std::vector<std::string>& words);
// Shell text that runs one load so long at most, beside the agent that it watches, if any.
std::string watched_load(const std::vector<std::string>& load, bool consent, unsigned limit_seconds);

// The script that a guest runs for one run of a workload: settings, companion (memtide-tiering-load), agent,
// workload. `workload` is shell text that ends with the status of the workload; $watch in it are words that
// make memtide-tiering-load report the cost of the agent, or nothing. The script's standard output is the
// workload's. Exit code 77 when the agent ended within 3 s: what it said last is on the standard error
// output.
std::string guest_script_around(System system, const GuestPlan& plan, const AgentCommand& agent,
                                const std::string& load_program, const std::string& workload);
// The same with one load, ended after `limit_seconds`.
std::string guest_script(System system, const GuestPlan& plan, const AgentCommand& agent,
                         const std::vector<std::string>& load, unsigned limit_seconds);

struct GuestOutput {
    bool skipped = false;  // the agent cannot
    std::string reason;    // of that
    std::string lines;
};

// Boots a guest, runs the script, and takes the guest down again, in at most boot time (3 min) and
// `limit_seconds`. `folder` takes what belongs to the rack.
Result<GuestOutput> run_in_guest(const GuestPlan& plan, const std::string& folder, const std::string& script,
                                 unsigned limit_seconds);

}  // namespace memtide::bench
