#include "tiering-agent/observe/address_space.h"

#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

VmaKind kind_of(const std::string& permissions, const std::string& name, std::uint64_t inode = 7) {
    const auto vma = parse_maps_line("1000-2000 " + permissions + " 00000000 fe:00 " + std::to_string(inode) +
                                     (name.empty() ? "" : "                     " + name));
    return vma ? vma->kind : VmaKind::kSpecial;
}

TEST(Maps, LineIsReadInFull) {
    const auto vma =
        parse_maps_line("55bd22c5e000-55bd22c64000 r-xp 00002000 fe:00 247498      /usr/bin/a b (deleted)");
    ASSERT_TRUE(vma.has_value());
    EXPECT_EQ(*vma, (Vma{.range = {0x55bd22c5e000, 0x55bd22c64000},
                         .kind = VmaKind::kFile,
                         .name = "/usr/bin/a b",
                         .readable = true,
                         .writable = false,
                         .executable = true,
                         .is_private = true,
                         .offset = 0x2000,
                         .inode = 247498}));
    EXPECT_EQ(vma->range.size(), Bytes{0x6000});
}

TEST(Maps, KindsAreToldByName) {
    EXPECT_EQ(kind_of("rw-p", "", 0), VmaKind::kAnonymous);
    EXPECT_EQ(kind_of("rw-p", "[anon:jemalloc arena]", 0), VmaKind::kAnonymous);
    EXPECT_EQ(kind_of("rw-p", "/dev/zero"), VmaKind::kAnonymous);
    EXPECT_EQ(kind_of("rw-p", "[heap]", 0), VmaKind::kHeap);
    EXPECT_EQ(kind_of("rw-p", "[stack]", 0), VmaKind::kStack);
    EXPECT_EQ(kind_of("r-xp", "/usr/lib/libc.so.6"), VmaKind::kFile);
    EXPECT_EQ(kind_of("rw-p", "", 12), VmaKind::kFile);
    EXPECT_EQ(kind_of("rw-s", "/dev/zero (deleted)"), VmaKind::kShared);
    EXPECT_EQ(kind_of("rw-s", "[anon_shmem:pool]"), VmaKind::kShared);
    EXPECT_EQ(kind_of("rw-s", "/dev/shm/PostgreSQL.1234"), VmaKind::kShared);
    EXPECT_EQ(kind_of("rw-s", "/SYSV0052e2c1 (deleted)"), VmaKind::kShared);
    EXPECT_EQ(kind_of("rw-s", "/memfd:ring (deleted)"), VmaKind::kShared);
    for (const char* name : {"[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[uprobes]",
                             "anon_inode:[io_uring]", "/[aio] (deleted)", "socket:[4711]"})
        EXPECT_EQ(kind_of("rw-s", name), VmaKind::kSpecial) << name;
    for (const char* name : {"/dev/dax0.0", "/dev/nvidia0", "/dev/dri/renderD128",
                             "/dmabuf:", "/i915 (deleted)", "/sys/devices/pci0000:00/0000:00:02.0/resource0"})
        EXPECT_EQ(kind_of("rw-s", name), VmaKind::kDevice) << name;
}

TEST(Maps, GarbageIsNone) {
    for (const char* line :
         {"", "x", "1000-2000", "2000-1000 rw-p 0 0:0 0", "1000-1000 rw-p 0 0:0 0", "1000-2000 rwxz 0 0:0 0",
          "1000-2000 rw-p g 0:0 0", "1000-2000 rw-p 0 00 0", "1000-2000 rw-p 0 0:0 x",
          "10000000000000000-20000000000000000 rw-p 0 0:0 0", "-1-5 rw-p 0 0:0 0", "Size: 8 kB"})
        EXPECT_FALSE(parse_maps_line(line).has_value()) << line;
}

TEST(Maps, WhatComesOutIsAscendingAndDoesNotOverlap) {
    const auto vmas = parse_maps(
        "1000-3000 rw-p 0 0:0 0\n2000-4000 rw-p 0 0:0 0\n\n3000-4000 rw-p 0 0:0 0\n1000-2000 rw-p 0 0:0 0\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
    ASSERT_EQ(vmas.size(), 3U);
    EXPECT_EQ(vmas[1].range, (VirtualRange{0x3000, 0x4000}));
    EXPECT_EQ(vmas[2].name, "[vsyscall]");
}

TEST(Smaps, FlagsGoToTheMappingOfTheSameRange) {
    auto vmas = parse_maps("1000-2000 rw-p 0 0:0 0\n2000-3000 rw-p 0 0:0 0\n5000-6000 rw-p 0 0:0 0\n");
    SmapsReader reader(vmas);
    for (const char* line :
         {"1000-2000 rw-p 00000000 00:00 0 ", "Size:                  4 kB", "VmFlags: rd wr mr mw me lo ac ",
          "VmFlags: ht", "2000-4000 rw-p 00000000 00:00 0 ", "VmFlags: lo", "5000-6000 rw-p 0 0:0 0",
          "VmFlags: rd wr ht pf"})
        reader.line(line);
    EXPECT_EQ(vmas[0].flags, (VmaFlags{.locked = true}));
    EXPECT_EQ(vmas[1].flags, std::nullopt);  // it has grown meanwhile
    EXPECT_EQ(vmas[2].flags, (VmaFlags{.hugetlb = true, .device_memory = true}));
}

TEST(NumaMaps, PolicyGoesToTheMappingThatBeginsThere) {
    auto vmas = parse_maps("1000-2000 rw-p 0 0:0 0\n2000-3000 rw-p 0 0:0 0\n3000-4000 rw-p 0 0:0 0\n");
    for (const char* line :
         {"00001000 default anon=4 dirty=4 N0=4 kernelpagesize_kB=4", "00002000 prefer (many):0-1 anon=1",
          "00009000 bind:0", "nonsense", "00003000", ""})
        apply_numa_maps_line(line, vmas);
    EXPECT_EQ(vmas[0].policy, "default");
    EXPECT_EQ(vmas[1].policy, "prefer (many):0-1");
    EXPECT_EQ(vmas[2].policy, std::nullopt);
}

TEST(SpecialSizesText, NeedsBothLines) {
    EXPECT_EQ(parse_special_sizes("VmLck:\t       8 kB\nHugetlbPages:\t    2048 kB\n"),
              (SpecialSizes{.locked = {8192}, .hugetlb = mebibytes(2)}));
    EXPECT_EQ(parse_special_sizes("VmLck:\t       8 kB\n"), std::nullopt);
    EXPECT_EQ(parse_special_sizes("VmLck: x kB\nHugetlbPages: 0 kB"), std::nullopt);
}

class AddressSpaceOfAProcess : public testing::Test {
  protected:
    void SetUp() override {
        tree_.put_process({.pid = 40, .start_time = 500});
        tree_.put(
            "proc/40/maps",
            "1000-2000 rw-p 00000000 00:00 0 \n2000-3000 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)\n");
        tree_.put(
            "proc/40/smaps",
            "1000-2000 rw-p 00000000 00:00 0 \nVmFlags: rd lo\n2000-3000 rw-p 0 0:0 0\nVmFlags: rd ht\n");
        tree_.put("proc/40/numa_maps", "1000 default\n2000 bind:1 huge\n");
    }
    const FakeTree tree_;
    const ProcessId process_{40, 500};
};

TEST_F(AddressSpaceOfAProcess, IsReadStepByStep) {
    auto vmas = read_address_space(tree_.files(), process_);
    ASSERT_TRUE(vmas.has_value()) << vmas.error().message;
    ASSERT_EQ(vmas->size(), 2U);
    EXPECT_EQ(vmas->front().flags, std::nullopt);
    ASSERT_TRUE(look_at_policies(tree_.files(), process_, *vmas).has_value());
    EXPECT_EQ(vmas->back().policy, "bind:1");
}

TEST_F(AddressSpaceOfAProcess, SmapsIsReadOnlyWhenSomethingIsLockedOrHuge) {
    auto vmas = read_address_space(tree_.files(), process_);
    ASSERT_TRUE(vmas.has_value());
    ASSERT_TRUE(look_at_flags(tree_.files(), process_, *vmas).has_value());
    EXPECT_EQ(vmas->front().flags, VmaFlags{});
    EXPECT_EQ(vmas->back().flags, (VmaFlags{.hugetlb = true}));  // by its name
    tree_.put("proc/40/status", "VmLck:\t4 kB\nHugetlbPages:\t0 kB\n");
    ASSERT_TRUE(look_at_flags(tree_.files(), process_, *vmas).has_value());
    EXPECT_EQ(vmas->front().flags, (VmaFlags{.locked = true}));
}

TEST_F(AddressSpaceOfAProcess, OfAnotherProcessWithThePidIsRefused) {
    tree_.put_stat({.pid = 40, .start_time = 501});
    auto vmas = parse_maps("1000-2000 rw-p 0 0:0 0\n");
    EXPECT_EQ(read_address_space(tree_.files(), process_).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(look_at_flags(tree_.files(), process_, vmas).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(look_at_policies(tree_.files(), process_, vmas).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(read_address_space(tree_.files(), {41, 1}).error().code, ErrorCode::kNotFound);
}

TEST(AddressSpace, LargeFilesAreReadInFull) {
    const FakeTree tree;
    tree.put_process({.pid = 40, .start_time = 500});
    std::string maps;
    constexpr int kCount = 65'530;  // vm.max_map_count
    for (int i = 1; i <= kCount; ++i) {
        char line[96];
        std::snprintf(line, sizeof line, "%x000-%x000 rw-p 00000000 00:00 0 \n", 2 * i, 2 * i + 1);
        maps += line;
    }
    tree.put("proc/40/maps", maps);
    const auto vmas = read_address_space(tree.files(), {40, 500});
    ASSERT_TRUE(vmas.has_value());
    EXPECT_EQ(vmas->size(), std::size_t{kCount});
}

}  // namespace
}  // namespace memtide::agent
