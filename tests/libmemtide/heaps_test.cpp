#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memtide/memtide.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using testing::HasSubstr;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// The memory policy of the mapping that has that address, from numa_maps; empty without NUMA.
std::string policy_of(const void* pointer) {
    std::ifstream maps("/proc/self/numa_maps");
    std::string policy;
    std::string line;
    while (std::getline(maps, line)) {
        if (std::stoull(line, nullptr, 16) > reinterpret_cast<std::uintptr_t>(pointer)) break;
        const std::size_t begin = line.find(' ') + 1;
        policy = line.substr(begin, line.find(" anon", begin) - begin);
    }
    return policy;
}

bool is_resident(const void* page) {
    unsigned char state = 0;
    const auto begin = reinterpret_cast<std::uintptr_t>(page) & ~std::uintptr_t{4095};
    return ::mincore(reinterpret_cast<void*>(begin), 1, &state) == 0 && (state & 1) != 0;
}

TEST(Heaps, MemoryOfATierIsBoundToItsNodes) {
    auto* const memory = static_cast<char*>(memtide_malloc("slow", 1000));
    ASSERT_NE(memory, nullptr) << memtide_error();
    std::memset(memory, 7, 1000);
    EXPECT_GE(memtide_usable_size(memory), 1000U);
    if (const std::string policy = policy_of(memory); !policy.empty()) {
        EXPECT_THAT(policy, HasSubstr("bind:0"));
    }
    memtide_free(memory);
}

TEST(Heaps, MemoryOfATierThatMayOverflowPrefersItsNodes) {
    void* const memory = memtide_malloc("slow,any", 1000);
    ASSERT_NE(memory, nullptr) << memtide_error();
    std::memset(memory, 7, 1000);
    if (const std::string policy = policy_of(memory); !policy.empty()) {
        EXPECT_THAT(policy, HasSubstr("prefer"));
    }
    memtide_free(memory);
}

TEST(Heaps, MemoryThatSpansTiersHasNoPolicySoThatTheAgentMovesIt) {
    void* const memory = memtide_malloc("any", 3 * kMiB);
    ASSERT_NE(memory, nullptr) << memtide_error();
    std::memset(memory, 7, 3 * kMiB);
    if (const std::string policy = policy_of(memory); !policy.empty()) {
        EXPECT_THAT(policy, HasSubstr("default"));
    }
    memtide_free(memory);
}

TEST(Heaps, NamesThatAreNoneAreExplained) {
    const auto refused = [](const char* heap, int error, const char* why) {
        errno = 0;
        EXPECT_EQ(memtide_malloc(heap, 1), nullptr);
        EXPECT_EQ(errno, error) << memtide_error();
        EXPECT_THAT(memtide_error(), HasSubstr(why));
    };
    refused("fsat", EINVAL, "this machine has no tier \"fsat\"; its tiers are fast, slow, later, gone");
    refused("", EINVAL, "no name of a heap");
    refused("fast,slow", EINVAL, "no name of a heap: write TIER, \"TIER,any\" or any");
    refused(nullptr, EINVAL, "no name");
    refused("later", ENODEV, "tier \"later\" has no memory now");
    if (!policy_of(&refused).empty()) {
        refused("gone", ENODEV, "none of the nodes 63 has memory");
    }
    EXPECT_EQ(memtide_heap_open("fsat"), nullptr);
}

TEST(Heaps, AFullTierIsToldAndNotKilledFor) {
    memtide_tier tier{};
    ASSERT_EQ(memtide_tier_at(0, &tier), 0) << memtide_error();
    EXPECT_STREQ(tier.name, "fast");
    EXPECT_GT(tier.capacity, tier.free);
    errno = 0;
    EXPECT_EQ(memtide_malloc("fast", tier.capacity + kMiB), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_THAT(memtide_error(), HasSubstr("heap \"fast\" has no room for"));
    EXPECT_EQ(memtide_malloc("fast", SIZE_MAX / 2 + 2), nullptr);
    EXPECT_EQ(memtide_calloc("fast", SIZE_MAX, 2), nullptr);
    // Also when nobody touches it: what was handed out counts.
    std::vector<void*> blocks;
    void* block = nullptr;
    while ((block = memtide_malloc("fast", 512 * kMiB)) != nullptr && blocks.size() < 1000)
        blocks.push_back(block);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_LE(blocks.size() * 512 * kMiB, tier.capacity);
    for (void* const one : blocks) memtide_free(one);
    // And is free again.
    block = memtide_malloc("fast", 512 * kMiB);
    EXPECT_EQ(block != nullptr, !blocks.empty());
    memtide_free(block);
}

TEST(Heaps, MemoryIsZeroedWhereThatIsAskedFor) {
    for (const char* heap : {"slow", "any"})
        for (const std::size_t size : {std::size_t{100}, 4 * kMiB}) {
            void* const dirty = memtide_malloc(heap, size);
            ASSERT_NE(dirty, nullptr);
            std::memset(dirty, 0xff, size);
            memtide_free(dirty);
            const auto* const memory = static_cast<const char*>(memtide_calloc(heap, size / 4, 4));
            ASSERT_NE(memory, nullptr);
            EXPECT_TRUE(std::all_of(memory, memory + size, [](char c) { return c == 0; }));
            memtide_free(const_cast<char*>(memory));
        }
}

TEST(Heaps, AlignmentIsAsAskedFor) {
    for (std::size_t alignment = 1; alignment <= 2 * kMiB; alignment *= 2) {
        void* const memory = memtide_aligned_alloc("slow", alignment, 100);
        ASSERT_NE(memory, nullptr) << alignment;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0U);
        memtide_free(memory);
    }
    EXPECT_EQ(memtide_aligned_alloc("slow", 24, 100), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(memtide_aligned_alloc("slow", 0, 100), nullptr);
}

TEST(Heaps, ABlockGrowsShrinksAndMovesToAnotherTier) {
    auto* memory = static_cast<char*>(memtide_realloc("slow", nullptr, 10));
    ASSERT_NE(memory, nullptr);
    std::memcpy(memory, "contents", 9);
    for (const std::size_t size : {std::size_t{100'000}, 5 * kMiB, std::size_t{20}}) {
        memory = static_cast<char*>(memtide_realloc(nullptr, memory, size));
        ASSERT_NE(memory, nullptr);
        EXPECT_STREQ(memory, "contents");
    }
    const std::uintptr_t before = reinterpret_cast<std::uintptr_t>(memory);
    memory = static_cast<char*>(memtide_realloc("fast", memory, 20));
    ASSERT_NE(memory, nullptr);
    EXPECT_NE(reinterpret_cast<std::uintptr_t>(memory), before);
    EXPECT_STREQ(memory, "contents");
    EXPECT_EQ(memtide_realloc("fsat", memory, 30), nullptr);
    EXPECT_STREQ(memory, "contents") << "untouched";
    memtide_free(memory);
    EXPECT_EQ(memtide_realloc(nullptr, nullptr, 30), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST(Heaps, LargeBlocksGiveTheirPagesBack) {
    for (const char* heap : {"slow", "slow,any"}) {
        auto* const memory = static_cast<char*>(memtide_malloc(heap, 8 * kMiB));
        ASSERT_NE(memory, nullptr);
        std::memset(memory, 1, 8 * kMiB);
        ASSERT_TRUE(is_resident(memory + 4 * kMiB));
        memtide_free(memory);
        EXPECT_FALSE(is_resident(memory + 4 * kMiB));
    }
}

TEST(Heaps, NothingAndNobodyAreFine) {
    errno = 5;
    memtide_free(nullptr);
    EXPECT_EQ(errno, 5);
    EXPECT_EQ(memtide_usable_size(nullptr), 0U);
    void* const none = memtide_malloc("slow", 0);
    EXPECT_NE(none, nullptr);
    memtide_free(none);
    memtide_tier tier{};
    EXPECT_EQ(memtide_tier_at(4, &tier), -1);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_STREQ(memtide_version(), MEMTIDE_VERSION);
}

// Blocks of many threads keep their contents, whoever frees them, and what is freed can be had again.
TEST(Heaps, ManyThreadsShareThem) {
    const auto work = [](unsigned seed) {
        const char* const heaps[] = {"fast", "slow", "any", "slow,any"};
        std::vector<std::pair<unsigned char*, std::size_t>> blocks;
        for (unsigned i = 0; i < 4'000; ++i) {
            const std::size_t size = 1 + (i * 7919 + seed) % (i % 50 == 0 ? 2 * kMiB : 3'000);
            auto* const block = static_cast<unsigned char*>(memtide_malloc(heaps[(i + seed) % 4], size));
            ASSERT_NE(block, nullptr) << memtide_error();
            block[0] = block[size - 1] = static_cast<unsigned char>(size);
            blocks.emplace_back(block, size);
            if (blocks.size() < 60) continue;
            const auto victim = blocks.begin() + (i * 31 + seed) % 60;
            ASSERT_EQ(victim->first[0], static_cast<unsigned char>(victim->second));
            ASSERT_EQ(victim->first[victim->second - 1], static_cast<unsigned char>(victim->second));
            memtide_free(victim->first);
            blocks.erase(victim);
        }
        for (const auto& [block, size] : blocks) memtide_free(block);
    };
    std::vector<std::jthread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
}

TEST(Heaps, AChildOfForkHasItsOwn) {
    auto* const memory = static_cast<char*>(memtide_malloc("slow", 100));
    ASSERT_NE(memory, nullptr);
    std::strcpy(memory, "parent");
    // Children while others allocate: none of them may find a lock taken.
    std::jthread busy([](const std::stop_token& stop) {
        while (!stop.stop_requested()) memtide_free(memtide_malloc("slow", 70'000));
    });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(20);
            std::strcpy(memory, "child");
            void* const more = memtide_malloc("slow", 3 * kMiB);
            memtide_free(more);
            ::_exit(more != nullptr ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_STREQ(memory, "parent");
    memtide_free(memory);
}

}  // namespace
