#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "common/process/child.h"

namespace memtide::emul {

struct RackRunOptions {
    int hosts = 1;
    bool network = false;  // an RDMA network "rdma0" between host0 and host1
    std::string manager;   // for --manager
};

// A rack of one switch with an MLD of four LDs (256 MiB each, two of them allocated) and some QEMU hosts,
// driven through the program as a person does. Folder and media are its own.
class RackRun {
  public:
    explicit RackRun(RackRunOptions options = {});
    ~RackRun();  // takes the rack down
    RackRun(const RackRun&) = delete;
    RackRun& operator=(const RackRun&) = delete;

    // Why racks cannot run on this machine; empty when they can.
    static std::string missing();

    process::Output up(std::vector<std::string> more = {});
    process::Output rack(const std::string& action, std::vector<std::string> words, std::string input = {});
    process::Output exec(const std::string& host, std::vector<std::string> words, std::string input = {});
    // A shell command in host0 that must succeed; gives its output without the last line end.
    std::string shell(const std::string& script);
    // Begins a fault of a rack that is up, in the words of `memtide-cxl-emul fault inject`.
    void inject(std::vector<std::string> words);
    boost::json::value status();
    boost::json::value host_status(int host);
    // Polls a shell condition in host0; false when it has not come true after a minute.
    bool wait_for(const std::string& condition);
    // Waits until no process of `pids` runs any more.
    static bool all_gone(const std::vector<int>& pids);
    process::Command command(const std::string& action, std::vector<std::string> words) const;
    void write_topology(const std::string& listen) const;

    [[nodiscard]] std::string run_folder() const { return folder_ + "/run"; }
    [[nodiscard]] const std::string& folder() const { return folder_; }
    [[nodiscard]] std::string topology() const { return folder_ + "/topology.yaml"; }

  private:
    RackRunOptions options_;
    std::string folder_;
    std::string media_;
};

}  // namespace memtide::emul
