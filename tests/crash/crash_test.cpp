// Kills the manager core with SIGKILL at every journal write and every effect of a composition's life, starts
// it again, and wants the job done exactly once (crash_driver.cpp says what is checked).
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "memtide-crash-XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string read(const std::string& file) const {
        std::stringstream text;
        text << std::ifstream(path_ + "/" + file).rdbuf();
        return text.str();
    }

  private:
    std::string path_;
};

// The wait status of the driver.
int drive(const Folder& folder, const std::string& scenario, int kill_at) {
    const std::string at = std::to_string(kill_at);
    const std::string output = folder.path() + "/output";
    const pid_t child = fork();
    if (child == 0) {
        if (std::freopen(output.c_str(), "a", stdout) == nullptr) _exit(126);
        execl(CRASH_DRIVER, CRASH_DRIVER, folder.path().c_str(), scenario.c_str(), at.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
bool went_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

class Crash : public ::testing::TestWithParam<std::string> {};

TEST_P(Crash, AtEveryPointTheJobIsDoneOnce) {
    int killed = 0;
    for (int point = 1;; ++point) {
        const Folder folder;
        const int status = drive(folder, GetParam(), point);
        if (!was_killed(status)) {
            ASSERT_TRUE(went_well(status)) << folder.read("output");
            break;  // the life has fewer points
        }
        ++killed;
        ASSERT_TRUE(went_well(drive(folder, GetParam(), 0)))
            << "killed at point " << point << ", " << folder.read("killed-at") << ": "
            << folder.read("output");
    }
    EXPECT_GE(killed, GetParam() == "early" ? 2 : 16) << "the sync points are gone";
}

// Twice in one life: also the recovery may be killed.
TEST_P(Crash, AtEveryPointOfTheRecoveryToo) {
    for (int first = 1;; first += 5) {
        bool first_was_last = false;
        for (int second = 1;; second += 3) {
            const Folder folder;
            if (!was_killed(drive(folder, GetParam(), first))) {
                first_was_last = true;
                break;
            }
            const int status = drive(folder, GetParam(), second);
            if (!was_killed(status)) {
                ASSERT_TRUE(went_well(status)) << folder.read("output");
                break;
            }
            ASSERT_TRUE(went_well(drive(folder, GetParam(), 0)))
                << "killed at points " << first << " and " << second << ": " << folder.read("output");
        }
        if (first_was_last) break;
    }
}

INSTANTIATE_TEST_SUITE_P(Lives, Crash, ::testing::Values("plain", "carve", "force", "early"),
                         [](const auto& info) { return info.param; });

}  // namespace
