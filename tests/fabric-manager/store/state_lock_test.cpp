// One state has one manager, by whatever name each of them knows it.
#include <csignal>

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "fabric-manager/store/backup.h"
#include "tests/fabric-manager/store/store_fixture.h"

namespace memtide::fm {
namespace {

class OneManager : public StoreFixture {
  protected:
    // What a second manager is told that names the state so.
    static Error told(const std::string& name) {
        const Result<std::unique_ptr<Store>> store = open_sqlite_store({.path = name});
        return store ? Error{ErrorCode::kInternal, name + " was opened twice"} : store.error();
    }
    static void expect_refused(const std::string& name) {
        const Error error = told(name);
        EXPECT_EQ(error.code, ErrorCode::kConflict) << error.message;
        EXPECT_NE(error.message.find("another fabric manager has the state file"), std::string::npos)
            << error.message;
    }
    // A process that holds the state until it is killed, after it has written something.
    pid_t start_holder() {
        int pipes[2];
        if (pipe(pipes) != 0) throw std::runtime_error("pipe");
        const pid_t child = fork();
        if (child == 0) {
            const auto store = open();
            fill(*store, 0, 3);
            if (write(pipes[1], "r", 1) != 1) _exit(1);
            for (;;) pause();
        }
        char ready = 0;
        if (read(pipes[0], &ready, 1) != 1) throw std::runtime_error("the holder ended");
        close(pipes[0]);
        close(pipes[1]);
        return child;
    }
    [[nodiscard]] std::string other_name() const { return (folder / "elsewhere" / "other.db").string(); }
    void make_hard_link() const {
        std::filesystem::create_directory(folder / "elsewhere");
        std::filesystem::create_hard_link(options.path, other_name());
    }
};

TEST_F(OneManager, SecondManagerIsRefused) {
    const auto store = open();
    const Result<std::unique_ptr<Store>> second = open_sqlite_store(options);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kConflict);
    EXPECT_NE(second.error().message.find("another fabric manager"), std::string::npos);
}

TEST_F(OneManager, ManagerInAnotherProcessIsRefused) {
    const auto store = open();
    const pid_t child = fork();
    if (child == 0) {
        const Result<std::unique_ptr<Store>> second = open_sqlite_store(options);
        _exit(!second && second.error().code == ErrorCode::kConflict ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(OneManager, ALinkStandsForTheStateThatItPointsTo) {
    const std::string link = (folder / "link.db").string();
    std::filesystem::create_symlink(options.path, link);
    {
        const auto store = open();
        fill(*store, 0, 3);
        const Result<std::unique_ptr<Store>> second = open_sqlite_store({.path = link});
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, ErrorCode::kConflict);
    }
    options.path = link;
    const auto store = open();
    EXPECT_EQ(compositions(*store), 3u);
    fill(*store, 3, 4);
}

TEST_F(OneManager, AHardLinkIsTheSameState) {
    const pid_t holder = start_holder();
    make_hard_link();
    expect_refused(other_name());
    expect_refused(options.path);
    const Error error = told(other_name());
    EXPECT_NE(error.message.find(other_name()), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("by another of its names"), std::string::npos) << error.message;
    // A backup would lack what is in the log beside the other name only.
    const Result<std::string> backup = backup_state(other_name(), (folder / "copy.db").string());
    ASSERT_FALSE(backup);
    EXPECT_EQ(backup.error().code, ErrorCode::kConflict);
    EXPECT_FALSE(restore_state(other_name(), options.path + ".snapshot"));
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
}

TEST_F(OneManager, AFileThatWasRenamedUnderItsManagerIsTheSameState) {
    const pid_t holder = start_holder();
    std::filesystem::rename(options.path, options.path + ".moved");
    expect_refused(options.path + ".moved");
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
}

TEST_F(OneManager, ARelativePathAndALinkedFolderAreTheSameState) {
    const pid_t holder = start_holder();
    std::filesystem::create_directory_symlink(folder, folder / "linked");
    expect_refused((folder / "linked" / "state.db").string());
    expect_refused((folder / "linked" / ".." / folder.filename() / "state.db").string());
    expect_refused(std::filesystem::relative(options.path).string());
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
}

TEST_F(OneManager, AMountOfTheFileIsTheSameState) {
    const pid_t holder = start_holder();
    const pid_t child = fork();
    if (child == 0) {
        const std::string other = (folder / "mounted.db").string();
        std::ofstream(other) << "";
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount(options.path.c_str(), other.c_str(), nullptr, MS_BIND, nullptr) != 0)
            _exit(77);
        _exit(told(other).code == ErrorCode::kConflict ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "mounting a file takes root";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(OneManager, KilledItHoldsNothing) {
    const pid_t holder = start_holder();
    make_hard_link();
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
    // What was acknowledged last is beside the name that it was made with.
    const Error error = told(other_name());
    EXPECT_EQ(error.code, ErrorCode::kConflict);
    EXPECT_NE(error.message.find("its log is not beside this one"), std::string::npos) << error.message;
    EXPECT_EQ(compositions(*open()), 3u);
}

TEST_F(OneManager, ABackupThatIsLinkedInPlaceIsNotWrittenTo) {
    const std::string copy = (folder / "copy.db").string();
    {
        const auto store = open();
        fill(*store, 0, 3);
        ASSERT_TRUE(backup_state(options.path, copy));
    }
    std::filesystem::create_hard_link(copy, folder / "new.db");
    const std::string before = bytes_of(copy);
    EXPECT_EQ(told((folder / "new.db").string()).code, ErrorCode::kConflict);
    EXPECT_EQ(bytes_of(copy), before);
}

// A recovery puts another file in the place of the one that was locked.
TEST_F(OneManager, TheFileThatARecoveryMadeIsLockedToo) {
    {
        const auto store = open();
        wait_for_snapshot();
        fill(*store, 0, 3);
    }
    write_bytes(options.path, "");
    const pid_t holder = fork();
    int status = 0;
    if (holder == 0) {
        const auto store = open();
        make_hard_link();
        const pid_t second = fork();
        if (second == 0) _exit(told(other_name()).code == ErrorCode::kConflict ? 0 : 1);
        waitpid(second, &status, 0);
        _exit(recovery(*store).empty() ? 2 : WEXITSTATUS(status));
    }
    ASSERT_EQ(waitpid(holder, &status, 0), holder);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(OneManager, ALinkToWhereNothingIsYetStandsForItToo) {
    const std::string link = (folder / "link.db").string();
    const std::string copy = (folder / "copy.db").string();
    std::filesystem::create_directory(folder / "real");
    std::filesystem::create_symlink("real/state.db", link);
    options.path = link;
    {
        const auto store = open();
        fill(*store, 0, 3);
        ASSERT_TRUE(backup_state(link, copy));
        fill(*store, 3, 5);
    }
    EXPECT_TRUE(std::filesystem::exists(folder / "real" / "state.db.lock"));
    ASSERT_TRUE(restore_state(link, copy));
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(compositions(*open()), 3u);
}

}  // namespace
}  // namespace memtide::fm
