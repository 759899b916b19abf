#include "tests/tiering-agent/observe/fake_tree.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

std::string make_folder() {
    std::string pattern = testing::TempDir() + "fake-tree.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    return pattern;
}

}  // namespace

FakeTree::FakeTree() : root_(make_folder()), files_(root_) {}

FakeTree::~FakeTree() { std::filesystem::remove_all(root_); }

void FakeTree::put(const std::string& path, const std::string& text) const {
    const std::filesystem::path full = root_ + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << text;
}

void FakeTree::link(const std::string& path, const std::string& target) const {
    const std::filesystem::path full = root_ + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::filesystem::remove(full);
    std::filesystem::create_symlink(target, full);
}

void FakeTree::remove(const std::string& path) const { std::filesystem::remove_all(root_ + "/" + path); }

void FakeTree::put_node(const Node& node) const {
    const std::string folder = fmt::format("sys/devices/system/node/node{}/", node.number);
    put(folder + "cpulist", node.cpus + "\n");
    put(folder + "meminfo", fmt::format("Node {0} MemTotal:       {1} kB\nNode {0} MemFree:        {2} kB\n"
                                        "Node {0} MemUsed:        1 kB\n",
                                        node.number, node.mebibytes * 1024, node.free_mebibytes * 1024));
    put(folder + "distance", node.distances + "\n");
    if (node.latency_ns == 0) return;
    for (const char* name : {"read_latency", "write_latency"})
        put(folder + "access0/initiators/" + name, fmt::format("{}\n", node.latency_ns));
}

void FakeTree::put_stat(const ProcessText& process) const {
    put(fmt::format("proc/{}/stat", process.pid),
        fmt::format("{} ({}) {} {} 0 0 0 -1 {} 99 0 0 0 300 200 0 0 20 0 1 0 {} 3133440 410 184467 {} 93926 "
                    "140726 0\n",
                    process.pid, process.comm, process.state, process.parent, process.flags,
                    process.start_time, process.start_code));
}

void FakeTree::put_process(const ProcessText& process) const {
    put_stat(process);
    const std::string folder = fmt::format("proc/{}/", process.pid);
    put(folder + "status",
        fmt::format("Name:\t{0}\nUmask:\t0022\nUid:\t7\t{1}\t{1}\t{1}\nVmLck:\t       0 kB\n"
                    "HugetlbPages:\t       0 kB\nMems_allowed:\t00000000,000000ff\nMems_allowed_list:\t{2}\n",
                    process.comm, process.uid, process.nodes));
    put(folder + "cmdline", process.arguments);
    put(folder + "cgroup", process.cgroup + "\n");
    link(folder + "exe", process.exe);
}

}  // namespace memtide::agent
