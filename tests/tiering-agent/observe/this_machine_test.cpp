// The kernel that the tests run on, and this process: reads only.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/observe/processes.h"
#include "tiering-agent/observe/tiers.h"

namespace memtide::agent {
namespace {

Result<Process> myself(const Files& files) {
    ProcessTable table(files);
    const auto processes = table.read();
    if (!processes) return std::unexpected(processes.error());
    for (const Process& process : *processes)
        if (process.id.pid == getpid()) return process;
    return fail(ErrorCode::kNotFound, "not among the processes");
}

const Vma* mapping_at(const std::vector<Vma>& vmas, const void* address) {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    for (const Vma& vma : vmas)
        if (vma.range.begin <= at && at < vma.range.end) return &vma;
    return nullptr;
}

TEST(ThisMachine, HasTiers) {
    const Files files;
    const auto nodes = read_nodes(files);
    if (nodes.empty()) GTEST_SKIP() << "this kernel has no NUMA";
    const auto tiers = group_tiers(nodes);
    ASSERT_TRUE(tiers.has_value());
    ASSERT_FALSE(tiers->tiers.empty());
    for (const Tier& tier : tiers->tiers) {
        fmt::print("tier {}: nodes {}, {} MiB, {} MiB free: {}\n", tier.name, tier.nodes.size(),
                   tier.capacity.value >> 20, tier.free.value >> 20, tier.why);
        EXPECT_GT(tier.capacity, tier.free);
    }
}

TEST(ThisMachine, HasThisProcess) {
    const auto process = myself(Files{});
    ASSERT_TRUE(process.has_value()) << process.error().message;
    fmt::print("process {} of {}, uid {}: {} ({}), cgroup {}, unit {}, rss {} MiB, cpu {} ms\n",
               process->id.pid, process->parent, process->uid.value_or(0), process->exe, process->command,
               process->cgroup, process->unit, process->rss.value >> 20, process->cpu_time.count());
    EXPECT_EQ(process->parent, getppid());
    EXPECT_EQ(process->uid, geteuid());
    EXPECT_NE(process->exe.find("memtide_agent_observe_test"), std::string::npos);
    EXPECT_NE(process->command.find("memtide_agent_observe_test"), std::string::npos);
    EXPECT_GT(process->rss, mebibytes(1));
    EXPECT_FALSE(process->is_kernel_thread);
}

TEST(ThisMachine, ShowsWhatThisProcessMappedAndLocked) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const memory = mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* const shared = mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ASSERT_NE(shared, MAP_FAILED);
    // Not mlock(): sanitizers make that do nothing.
    const bool is_locked = syscall(SYS_mlock, memory, 8 * page) == 0;
    const Files files;
    const auto process = myself(files);
    ASSERT_TRUE(process.has_value());
    auto vmas = read_address_space(files, process->id);
    ASSERT_TRUE(vmas.has_value()) << vmas.error().message;
    ASSERT_TRUE(look_at_flags(files, process->id, *vmas).has_value());
    const Vma* mine = mapping_at(*vmas, memory);
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(mine->kind, VmaKind::kAnonymous);
    EXPECT_TRUE(mine->writable && mine->is_private);
    ASSERT_TRUE(mine->flags.has_value());
    EXPECT_EQ(mine->flags->locked, is_locked);
    const Vma* ours = mapping_at(*vmas, shared);
    ASSERT_NE(ours, nullptr);
    EXPECT_EQ(ours->kind, VmaKind::kShared);
    if (files.exists("proc/self/numa_maps")) {
        ASSERT_TRUE(look_at_policies(files, process->id, *vmas).has_value());
        EXPECT_EQ(mapping_at(*vmas, memory)->policy, "default");
    }
    const Vma* const code = mapping_at(*vmas, reinterpret_cast<void*>(&mapping_at));
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(code->kind, VmaKind::kFile);
    EXPECT_TRUE(code->executable);
    munmap(memory, 8 * page);
    munmap(shared, 8 * page);
}

TEST(ThisMachine, EveryAddressSpaceCanBeReadThatMayBeRead) {
    const Files files;
    ProcessTable table(files);
    const auto processes = table.read();
    ASSERT_TRUE(processes.has_value());
    std::size_t spaces = 0;
    std::size_t mappings = 0;
    for (const Process& process : *processes) {
        const auto vmas = read_address_space(files, process.id);
        if (!vmas) continue;
        ++spaces;
        mappings += vmas->size();
    }
    fmt::print("{} processes, {} address spaces, {} mappings\n", processes->size(), spaces, mappings);
    EXPECT_GE(spaces, 1U);
    EXPECT_GT(mappings, spaces);
}

}  // namespace
}  // namespace memtide::agent
