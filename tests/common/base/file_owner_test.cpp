// Whose new files are: root's commands leave them to the service, everybody else's are their own.
#include "common/base/file_owner.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace memtide {
namespace {

constexpr uid_t kService = 61'234;  // nobody's

class FileOwner : public testing::Test {
  protected:
    FileOwner() {
        std::string name = (std::filesystem::temp_directory_path() / "memtide-owner.XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~FileOwner() override { std::filesystem::remove_all(folder_); }
    [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }
    static int create(const std::string& path) {
        return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    static uid_t user_of(const std::string& path) {
        struct stat status{};
        EXPECT_EQ(::stat(path.c_str(), &status), 0);
        return status.st_uid;
    }
    std::filesystem::path folder_;
};

TEST_F(FileOwner, TellsTheNameOrTheNumber) {
    EXPECT_EQ(owner_of("/"), "root");
    EXPECT_EQ(owner_of(file("none")), "");
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
    ASSERT_EQ(::chown(folder_.c_str(), kService, kService), 0);
    EXPECT_EQ(owner_of(folder_.string()), "#61234");
}

TEST_F(FileOwner, WhatIsOnesOwnIsLeftAlone) {
    const int fd = create(file("new"));
    EXPECT_TRUE(give_to_owner_of(fd, file("new"), file("old")));
    EXPECT_EQ(user_of(file("new")), ::geteuid());
    ::close(fd);
}

TEST_F(FileOwner, RootGivesANewFileToTheOwnerOfTheFolder) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
    ASSERT_EQ(::chown(folder_.c_str(), kService, kService + 1), 0);
    const int fd = create(file("new"));
    ASSERT_TRUE(give_to_owner_of(fd, file("new"), file("old")));
    struct stat status{};
    ::fstat(fd, &status);
    EXPECT_EQ(status.st_uid, kService);
    EXPECT_EQ(status.st_gid, kService + 1);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    ::close(fd);
}

TEST_F(FileOwner, RootGivesItToTheOwnerOfTheFileThatIsReplaced) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
    ::close(create(file("old")));
    ASSERT_EQ(::chown(file("old").c_str(), kService, kService), 0);
    const int fd = create(file("new"));
    ASSERT_TRUE(give_to_owner_of(fd, file("new"), file("old")));
    EXPECT_EQ(user_of(file("new")), kService);
    ::close(fd);
}

TEST_F(FileOwner, WhoMayNotGiveItIsToldAsWhomToRun) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
    ::close(create(file("old")));
    ASSERT_EQ(::seteuid(kService), 0);
    const int fd = create(file("new"));
    const auto given = give_to_owner_of(fd, file("new"), file("old"));
    const auto forbidden = fail_errno_with_owner("open", file("none"), EACCES);
    EXPECT_NE(forbidden.error().message.find("sudo -u 'root'"), std::string::npos)
        << forbidden.error().message;
    const auto elsewhere = give_to_owner_of(fd, file("new"), file("none"));
    ASSERT_EQ(::seteuid(0), 0);
    ::close(fd);
    ASSERT_FALSE(given);
    EXPECT_EQ(given.error().code, ErrorCode::kPermission);
    EXPECT_NE(given.error().message.find("sudo -u 'root'"), std::string::npos) << given.error().message;
    EXPECT_TRUE(elsewhere);  // a folder that others may write to
}

}  // namespace
}  // namespace memtide
