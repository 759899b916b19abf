#include "tiering-agent/track/page_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/tiering-agent/observe/fake_tree.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

TEST(FrameNodes, FramesAreOfTheNodeThatTheirBlockIsIn) {
    const FakeTree tree;
    tree.put("sys/devices/system/memory/block_size_bytes", "8000000\n");
    tree.put("sys/devices/system/node/node0/memory0/state", "online\n");
    tree.put("sys/devices/system/node/node0/memory1/state", "online\n");
    tree.put("sys/devices/system/node/node1/memory40/state", "online\n");
    tree.put("sys/devices/system/node/node1/memory_side_cache/size", "0\n");
    tree.put("sys/devices/system/node/has_cpu", "0\n");
    const auto nodes = FrameNodes::read(tree.files());
    ASSERT_TRUE(nodes) << nodes.error().message;
    constexpr std::uint64_t kFramesPerBlock = 0x8000000 >> kPageShift;
    EXPECT_EQ(nodes->node_of(0), 0);
    EXPECT_EQ(nodes->node_of(2 * kFramesPerBlock - 1), 0);
    EXPECT_EQ(nodes->node_of(2 * kFramesPerBlock), -1);
    EXPECT_EQ(nodes->node_of(40 * kFramesPerBlock + 7), 1);
    EXPECT_EQ(nodes->node_of(UINT64_MAX >> 1), -1);
}

TEST(FrameNodes, AKernelThatDoesNotSayIsNamed) {
    const FakeTree tree;
    EXPECT_EQ(FrameNodes::read(tree.files()).error().code, ErrorCode::kUnavailable);
    tree.put("sys/devices/system/memory/block_size_bytes", "8000000\n");
    EXPECT_EQ(FrameNodes::read(tree.files()).error().code, ErrorCode::kUnavailable);
    tree.put("sys/devices/system/memory/block_size_bytes", "many\n");
    EXPECT_FALSE(FrameNodes::read(tree.files()));
}

// On this machine: memory of this process, of which some pages are there.
TEST(PageMap, TellsWhatIsPopulated) {
    constexpr std::size_t kSize = 64 << kPageShift;
    void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    for (const std::size_t page : {3, 4, 10}) static_cast<volatile char*>(memory)[page << kPageShift] = 1;
    Files files;
    auto map = PageMap::open(files, getpid());
    ASSERT_TRUE(map) << map.error().message;
    const auto begin = reinterpret_cast<std::uint64_t>(memory);
    const auto runs = map->populated({begin, begin + kSize});
    ASSERT_TRUE(runs) << runs.error().message;
    const std::uint64_t first = begin >> kPageShift;
    std::size_t present = 0;
    for (const PageRun& run : *runs)
        for (std::uint64_t page = run.begin; page < run.end; ++page) {
            const auto words = map->read(page, 1);
            ASSERT_TRUE(words);
            if (words->front().is_present()) ++present;
            EXPECT_EQ(words->front().is_present(),
                      page == first + 3 || page == first + 4 || page == first + 10);
        }
    EXPECT_EQ(present, 3U);
    munmap(memory, kSize);
    EXPECT_EQ(PageMap::open(files, 0x3fffff).error().code, ErrorCode::kNotFound);
}

// Either this kernel has the bits and they are told right, or it says that it has none.
TEST(SoftDirty, IsFoundOutByTrying) {
    Files files;
    auto tracker = make_soft_dirty_tracker(files);
    if (!tracker) {
        EXPECT_NE(tracker.error().message, "");
        GTEST_SKIP() << tracker.error().message;
    }
    EXPECT_EQ((*tracker)->sees(), "writes");
}

}  // namespace
}  // namespace memtide::agent
