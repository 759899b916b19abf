#pragma once

#include <functional>
#include <string>
#include <variant>

namespace memtide::fm {

enum class Task { kRun, kCheckConfig, kBackup, kRestore };

struct Options {
    std::string config;
    Task task = Task::kRun;
    std::string backup_file;       // what kBackup writes and kRestore reads
    std::string pcap;              // in place of what the configuration says
    bool recover = false;          // run even if something that was acknowledged is lost
    std::function<int()> command;  // when set: what to do in place of the task; answers the exit code
};

// The options of the command line, or the code to exit with: 0 after --help and --version, 2 on bad usage
// (which has been explained on standard error).
std::variant<Options, int> parse_options(int argc, const char* const* argv);

}  // namespace memtide::fm
