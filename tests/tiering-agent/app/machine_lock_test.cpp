#include "tiering-agent/app/machine_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/integration/temp_folder.h"

namespace memtide::agent {
namespace {

TEST(MachineLock, OneAtATimeAndTheNextAfterIt) {
    const test::TempFolder folder;
    const std::string path = folder.path() + "/lock";
    {
        const auto first = MachineLock::take(path);
        ASSERT_TRUE(first) << first.error().message;
        const auto second = MachineLock::take(path);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
        EXPECT_THAT(second.error().message, testing::HasSubstr("pid " + std::to_string(getpid()) + ")"));
    }
    EXPECT_TRUE(MachineLock::take(path));
}

TEST(MachineLock, APlaceThatIsNotThereIsNamed) {
    EXPECT_THAT(MachineLock::take("/nowhere/lock").error().message, testing::HasSubstr("/nowhere/lock"));
}

}  // namespace
}  // namespace memtide::agent
