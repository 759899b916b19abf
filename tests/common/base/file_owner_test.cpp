// Whose new files are: root's commands leave them to the service, everybody else's are their own.
#include "common/base/file_owner.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

// What a child of this process is, once it has become the owner: its user and group, or -1.
std::pair<long, long> become_in_child(const std::string& path) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto user = become_owner(path);
        const long is[2] = {user ? static_cast<long>(::geteuid()) : -1, static_cast<long>(::getegid())};
        _exit(::write(ends[1], is, sizeof is) == sizeof is ? 0 : 1);
    }
    long is[2] = {-1, -1};
    EXPECT_EQ(::read(ends[0], is, sizeof is), static_cast<ssize_t>(sizeof is));
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    return {is[0], is[1]};
}

TEST_F(FileOwner, RootBecomesWhomTheFirstFolderOfAnotherBelongsTo) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    EXPECT_EQ(become_in_child(file("state.db")).first, 0);
    std::filesystem::create_directories(folder_ / "theirs" / "deep");
    ASSERT_EQ(::chown(file("theirs").c_str(), kService, kService + 1), 0);
    EXPECT_EQ(become_in_child(file("theirs/state.db")), std::pair(61'234L, 61'235L));
    EXPECT_EQ(become_in_child(file("theirs/deep/none/state.db")).first, 61'234L) << "although deep is root's";
    std::filesystem::create_symlink(folder_ / "theirs", folder_ / "link");
    EXPECT_EQ(become_in_child(file("link/state.db")).first, 61'234L);
    std::filesystem::create_symlink("/etc", folder_ / "theirs" / "etc");
    EXPECT_EQ(become_in_child(file("theirs/etc/passwd")).first, 61'234L)
        << "a link of theirs leads to root's";
}

TEST_F(FileOwner, OnlyRegularFilesAreOpened) {
    ASSERT_EQ(::mkfifo(file("fifo").c_str(), 0600), 0);
    EXPECT_EQ(open_regular_file("open", file("fifo")).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(open_regular_file("open", folder_.string()).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(open_regular_file("open", file("none")).error().code, ErrorCode::kNotFound);
    ::close(create(file("one")));
    const auto fd = open_regular_file("open", file("one"));
    ASSERT_TRUE(fd);
    ::close(*fd);
}

TEST_F(FileOwner, WhatHasAnotherNameIsNotGivenAway) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
    ::close(create(file("old")));
    ASSERT_EQ(::chown(file("old").c_str(), kService, kService), 0);
    const int fd = create(file("new"));
    std::filesystem::create_hard_link(file("new"), file("other"));
    EXPECT_EQ(give_to_owner_of(fd, file("new"), file("old")).error().code, ErrorCode::kPermission);
    EXPECT_EQ(user_of(file("new")), 0U);
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
