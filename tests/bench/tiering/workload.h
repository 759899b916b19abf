#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "tests/bench/tiering/guest.h"
#include "tests/bench/tiering/runs.h"

namespace memtide::bench {

// One benchmark with its settings, as the command line has them.
struct Workload {
    std::string bench;  // "tiering-gups": one of benches()
    std::string thp = "off";
    std::string fast = "384MiB";
    std::string slow = "768MiB";
    std::string ratio;  // "1:4" in place of `fast` and `slow`
    std::string kernel;
    std::string size = "640MiB";
    std::string hot;  // empty: default_hot()
    double exponent = 0.99;
    unsigned keys_per_page = 4;
    bool reads = false;
    bool consent = false;  // one load lets itself be watched (`memtide agent run`)
    unsigned threads = 1;
    unsigned seconds = 0;  // 0: default_seconds()
    unsigned shift_every = 0;
    unsigned companion_ms = 10;
    double detect_seconds = 1;
    unsigned kills = 100;
    std::string ycsb = "B";
};

// Programs that are run in guests.
struct Programs {
    std::string load;    // memtide-tiering-load
    std::string killer;  // memtide-tiering-killer
    std::string redis;   // memtide-tiering-redis
};

const std::vector<std::string>& benches();
std::string default_hot(const std::string& bench);
unsigned default_seconds(const std::string& bench);
unsigned default_shift(const std::string& bench);

// Memory of the guest's nodes. With a ratio of 1:N the fast node has room for 1/(N+1) of the load beside what
// the kernel takes of it, the slow one for the rest and something to spare.
Result<GuestPlan> guest_plan(const Workload& workload);

// Shell text for guest_script_around(). `agent` is what tiering-kill starts and kills.
Result<std::string> workload_script(const Workload& workload, const Programs& programs,
                                    const AgentCommand& agent, unsigned limit_seconds);

// Everything that makes runs comparable, for SavedRun; programs' folders are not in it.
std::string settings_text(const Workload& workload);

// Of the standard output of such a script. kProtocol as parse_load_run().
Result<Figures> read_figures(const Workload& workload, std::string_view lines);

}  // namespace memtide::bench
