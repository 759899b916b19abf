#include "cxl-emul/rack/run_folder.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

namespace memtide::emul {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunFolderTest : public testing::Test {
  protected:
    RunFolderTest() {
        std::string name = testing::TempDir() + "run-folder-XXXXXX";
        path_ = std::string(::mkdtemp(name.data())) + "/rack";
    }
    ~RunFolderTest() override {
        std::error_code ignored;
        fs::remove_all(fs::path(path_).parent_path(), ignored);
    }
    std::string path_;
};

TEST_F(RunFolderTest, SecondClaimIsRefusedWithThePid) {
    auto first = RunFolder::claim(path_);
    ASSERT_TRUE(first) << first.error().message;
    ASSERT_TRUE(first->record_pid(4711));
    const auto second = RunFolder::claim(path_);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
    EXPECT_THAT(second.error().message, HasSubstr("already running (pid 4711)"));
    EXPECT_EQ(RunFolder::running(path_), 4711);
}

TEST_F(RunFolderTest, FolderOfOneThatDiedIsCleanedAndTaken) {
    {
        auto dead = RunFolder::claim(path_);
        ASSERT_TRUE(dead);
        ASSERT_TRUE(dead->record_pid(4711));
        ASSERT_TRUE(dead->add_host("host0"));
        for (const char* name : {"/control.sock", "/initramfs", "/supervisor.log", "/hosts/host0/serial.log"})
            std::ofstream(path_ + name) << "old";
    }
    EXPECT_FALSE(RunFolder::running(path_));
    auto next = RunFolder::claim(path_);
    ASSERT_TRUE(next) << next.error().message;
    for (const char* name : {"/control.sock", "/initramfs", "/supervisor.log", "/hosts"})
        EXPECT_FALSE(fs::exists(path_ + name)) << name;
}

TEST_F(RunFolderTest, StrangersFilesStay) {
    fs::create_directories(path_);
    std::ofstream(path_ + "/notes.txt") << "mine";
    auto folder = RunFolder::claim(path_);
    ASSERT_TRUE(folder);
    folder->clear(true);
    EXPECT_TRUE(fs::exists(path_ + "/notes.txt"));
}

TEST_F(RunFolderTest, ClearingEverythingRemovesTheFolder) {
    auto folder = RunFolder::claim(path_);
    ASSERT_TRUE(folder);
    ASSERT_TRUE(folder->add_host("host0"));
    folder->clear(true);
    EXPECT_FALSE(fs::exists(path_));
}

TEST_F(RunFolderTest, LinkThatSomebodyPutThereIsNotFollowed) {
    const auto elsewhere = fs::path(path_).parent_path() / "elsewhere";
    fs::create_directories(elsewhere);
    fs::create_directory_symlink(elsewhere, path_);
    const auto folder = RunFolder::claim(path_);
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().code, ErrorCode::kPermission);
    EXPECT_TRUE(fs::is_empty(elsewhere));
}

TEST_F(RunFolderTest, PathTooLongForASocketIsRefusedWithAdvice) {
    const auto folder = RunFolder::claim(path_ + "/" + std::string(120, 'x'));
    ASSERT_FALSE(folder);
    EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(folder.error().message, HasSubstr("--run-dir"));
}

}  // namespace
}  // namespace memtide::emul
