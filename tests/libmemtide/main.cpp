#include <cstdlib>

#include <gtest/gtest.h>

// The library asks the environment once.
int main(int argc, char** argv) {
    ::setenv("MEMTIDE_TIERS", "fast=0;slow=0;later=;gone=63", 1);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
