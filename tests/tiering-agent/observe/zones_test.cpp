#include "tiering-agent/observe/zones.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

constexpr const char* kZoneInfo = R"(Node 0, zone    DMA32
  per-node stats
      nr_inactive_anon 12
  pages free     7000
        boost    0
        min      2000
        low      2500
        high     3000
        protection: (0, 0, 500, 500)
  pagesets
    cpu: 0
              count: 0
              high:  378
Node 0, zone   Normal
  pages free     100
        high     300
        protection: (0, 0, 0, 0)
Node 1, zone   Normal
  pages free     9000
        high     1000
        protection: (0, 0, 0, 0)
)";

TEST(Zones, UsableIsWhatIsAboveTheHighWatermarkAndNotReserved) {
    EXPECT_EQ(parse_zones(kZoneInfo), (UsablePages{{0, 3500}, {1, 8000}}));
}

TEST(Zones, WhateverTheTextNothingFallsOver) {
    EXPECT_TRUE(parse_zones("").empty());
    EXPECT_TRUE(parse_zones("pages free 7\n").empty());
    EXPECT_EQ(parse_zones("Node x, zone\n  pages free\n  high \n"), (UsablePages{{0, 0}}));
    for (std::size_t length = 0; length < std::string_view(kZoneInfo).size(); ++length)
        EXPECT_LE(parse_zones(std::string_view(kZoneInfo).substr(0, length)).size(), 2U);
}

}  // namespace
}  // namespace memtide::agent
