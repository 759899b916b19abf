#include "tiering-agent/observe/memory_latency.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

TEST(MemoryLatency, OfThisMachineIsThatOfMemoryAndNotOfACache) {
    const auto latency = make_memory_latency();
    const auto ns = latency->measure(0);
    if (!ns) GTEST_SKIP() << "no memory can be bound to node 0 here, or its caches cannot be flushed";
    EXPECT_GT(*ns, 20) << "a load from a cache takes 1 to 15 ns";
    latency->keep_only({});
    EXPECT_TRUE(latency->measure(0)) << "and again";
}

TEST(MemoryLatency, OfANodeThatIsNotThereIsNotKnown) {
    const auto latency = make_memory_latency();
    for (const int node : {-1, 1'023, 1'024, 100'000}) EXPECT_FALSE(latency->measure(node)) << node;
}

}  // namespace
}  // namespace memtide::agent
