#include <cstdlib>

#include <gtest/gtest.h>

#if defined(__SANITIZE_THREAD__)
// Around a fork memkind's allocator holds the locks of all its arenas: more than the deadlock detector can
// count.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "detect_deadlocks=0"; }
#endif

// The library asks the environment once.
int main(int argc, char** argv) {
    ::setenv("MEMTIDE_TIERS", "fast=0;slow=0;later=;gone=63", 1);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
