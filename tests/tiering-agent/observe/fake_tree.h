#pragma once

#include <cstdint>
#include <string>

#include "common/sysfs/files.h"

namespace memtide::agent {

// A temporary folder that stands for "/": what is put there is what the kernel says.
class FakeTree {
  public:
    FakeTree();
    ~FakeTree();
    FakeTree(const FakeTree&) = delete;
    FakeTree& operator=(const FakeTree&) = delete;

    void put(const std::string& path, const std::string& text) const;
    void link(const std::string& path, const std::string& target) const;
    void remove(const std::string& path) const;  // a file, or a folder with all that is in it
    [[nodiscard]] const Files& files() const { return files_; }
    [[nodiscard]] Files& files() { return files_; }

    struct Node {
        int number = 0;
        std::string cpus{};
        std::uint64_t mebibytes = 0;
        std::uint64_t free_mebibytes = 0;
        std::string distances{};
        unsigned latency_ns = 0;
    };
    void put_node(const Node& node) const;

    struct ProcessText {
        int pid = 0;
        std::uint64_t start_time = 0;
        int parent = 1;
        std::string comm = "worker";
        std::string exe = "/usr/bin/worker";
        std::string arguments{};  // with NULs
        std::string cgroup = "0::/system.slice/worker.service";
        unsigned uid = 0;
        std::string nodes = "0-7";
        char state = 'S';
        std::uint64_t flags = 0;
        std::uint64_t start_code = 4096;
    };
    void put_process(const ProcessText& process) const;
    void put_stat(const ProcessText& process) const;

  private:
    std::string root_;
    Files files_;
};

}  // namespace memtide::agent
