#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>
#include <memtide/memory_resource.h>

namespace {

TEST(MemoryResource, ContainersLiveInATier) {
    memtide::memory_resource slow("slow");
    std::pmr::unordered_map<int, std::pmr::string> map(&slow);
    for (int i = 0; i < 1'000; ++i) map.emplace(i, std::string(200, 'x'));
    EXPECT_EQ(map.at(77).get_allocator().resource(), &slow);
    EXPECT_GE(memtide_usable_size(map.at(77).data()), 201U) << "it is of a heap";
}

TEST(MemoryResource, TwoOfAHeapAreEqual) {
    const memtide::memory_resource slow("slow");
    const memtide::memory_resource slow_too(std::string("slow"));
    const memtide::memory_resource fast("fast");
    EXPECT_TRUE(slow == slow_too);
    EXPECT_FALSE(slow == fast);
    EXPECT_FALSE(slow == *std::pmr::new_delete_resource());
}

TEST(MemoryResource, AlignmentBeyondThatOfMallocIsKept) {
    memtide::memory_resource slow("slow");
    void* const memory = slow.allocate(100, 4096);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0U);
    slow.deallocate(memory, 100, 4096);
}

TEST(MemoryResource, WhatIsNotThereIsThrown) {
    try {
        const memtide::memory_resource wrong("fsat");
        FAIL();
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code().value(), EINVAL);
        EXPECT_NE(std::string(error.what()).find("no tier \"fsat\""), std::string::npos);
    }
    memtide::memory_resource slow("slow");
    EXPECT_THROW((void)slow.allocate(std::size_t{1} << 50), std::bad_alloc);
}

TEST(Allocator, ContainersWithTheirOwnAllocator) {
    const memtide::allocator<int> slow("slow");
    std::vector<int, memtide::allocator<int>> numbers(slow);
    for (int i = 0; i < 10'000; ++i) numbers.push_back(i);
    EXPECT_EQ(numbers[9'999], 9'999);
    std::map<int, int, std::less<>, memtide::allocator<std::pair<const int, int>>> map(slow);
    map[3] = 4;
    EXPECT_TRUE(map.get_allocator() == slow);
    EXPECT_TRUE(map.get_allocator() != memtide::allocator<int>("any"));
    EXPECT_THROW((void)memtide::allocator<int>("slow").allocate(SIZE_MAX / 2), std::bad_array_new_length);
}

}  // namespace
