// Backup, restore and damage of the state file, with the real program.
#include <filesystem>
#include <fstream>

#include "common/process/child.h"
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class StateFiles : public Fabric {
  protected:
    process::Output run(std::vector<std::string> arguments) {
        write_file(config_, manager_yaml(folder_, {}));
        process::Command command;
        command.argv = {MEMTIDE_FABRIC_MANAGER};
        command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
        auto output = process::run(command, std::chrono::seconds(60));
        if (!output) throw std::runtime_error(output.error().message);
        return *output;
    }
    void back_up() {
        const process::Output output = run({"backup", "--config", config_, backup_});
        ASSERT_EQ(output.exit.code, 0) << output.standard_error;
    }
    void restore() {
        const process::Output output = run({"--config", config_, "restore", backup_});
        ASSERT_EQ(output.exit.code, 0) << output.standard_error;
        EXPECT_NE(output.standard_output.find("what was there is "), std::string::npos);
    }
    std::vector<boost::json::value> compositions() {
        const boost::json::value page = rest_.get("/v1/compositions").json;
        const auto& items = page.at("items").as_array();
        return {items.begin(), items.end()};
    }

    std::string config_ = folder_.file("for-commands.yaml");
    std::string state_ = folder_.file("state.db");
    std::string backup_ = folder_.file("backup.db");
};

TEST_F(StateFiles, ABackupIsMadeWhileTheManagerRunsAndNotRestoredWhileItDoes) {
    run_all();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    back_up();
    const process::Output again = run({"backup", "--config", config_, backup_});
    EXPECT_EQ(again.exit.code, 1);
    EXPECT_NE(again.standard_error.find("is there already"), std::string::npos) << again.standard_error;
    const process::Output refused = run({"restore", "--config", config_, backup_});
    EXPECT_EQ(refused.exit.code, 1);
    EXPECT_NE(refused.standard_error.find("another fabric manager"), std::string::npos)
        << refused.standard_error;
    release(id);
    expect_state(id, "Released");
    EXPECT_EQ(run({"backup", "--config", config_}).exit.code, 2);
}

TEST_F(StateFiles, WhatWasComposedAfterTheBackupIsAdoptedAfterTheRestore) {
    run_all();
    const std::string before = compose("host0");
    expect_state(before, "Online");
    back_up();
    const std::string after = compose("host1");
    const boost::json::value unknown_to_backup = expect_state(after, "Online");
    manager_->kill();
    restore();
    run_manager();
    expect_ready();
    EXPECT_EQ(state_of(before), "Online");
    EXPECT_TRUE(eventually([&] { return compositions().size() == 2; }));
    const auto all = compositions();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[1].at("adopted"), true);
    EXPECT_EQ(only_part(all[1]).at("serial"), only_part(unknown_to_backup).at("serial"));
    EXPECT_EQ(text(all[1], "host"), "host1");
    for (const auto& one : all) {
        expect_state(text(one, "id"), "Online");
        release(text(one, "id"));
        expect_state(text(one, "id"), "Released");
    }
    expect_all_free();
}

TEST_F(StateFiles, WhatWasReleasedAfterTheBackupIsNotHandedOutTwice) {
    run_all({.lds = 1});
    const std::string old = compose("host0");
    expect_state(old, "Online");
    back_up();
    release(old);
    expect_state(old, "Released");
    // The only LD goes to the other host, which the backup knows nothing of.
    const std::string current = compose("host1");
    const boost::json::value serial = only_part(expect_state(current, "Online")).at("serial");
    manager_->kill();
    restore();
    run_manager();
    expect_ready();
    // The old owner has lost it; whoever has it keeps it.
    expect_state(old, "Failed");
    EXPECT_TRUE(eventually([&] {
        const auto all = compositions();
        return all.size() == 2 && text(all[1], "state") == "Online";
    }));
    const auto all = compositions();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(only_part(all[1]).at("serial"), serial);
    EXPECT_EQ(text(all[1], "host"), "host1");
    EXPECT_EQ(rest_.compose("host0", "256MiB").status, 409U);
    release(text(all[1], "id"));
    expect_state(text(all[1], "id"), "Released");
    expect_all_free();
}

TEST_F(StateFiles, ADamagedStateFileIsRecoveredAtTheStartAndTold) {
    run_all();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(state_ + ".snapshot"); }));
    manager_->terminate();  // in good order, so that the file is not overlaid by its WAL
    std::ofstream(state_, std::ios::in | std::ios::out | std::ios::binary) << std::string(4096, '#');
    run_manager();
    expect_ready();
    expect_state(id, "Online");
    EXPECT_NE(manager_->output().find("nothing that was acknowledged is lost"), std::string::npos);
    release(id);
    expect_state(id, "Released");
    expect_all_free();
}

// Root runs the commands, a user of its own the service; that user may put any link where root would write.
TEST_F(StateFiles, RootDoesInAnothersFolderWhatThatUserCouldDo) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    constexpr uid_t kService = 61'234;
    run_all();
    expect_state(compose("host0"), "Online");
    manager_->terminate();
    const auto each_of_state = [&](const auto& act) {
        for (const auto& one : std::filesystem::directory_iterator(folder_.file("")))
            if (one.path().filename().string().starts_with("state.db")) act(one.path());
    };
    ASSERT_EQ(::chown(folder_.file("").c_str(), kService, kService), 0);
    each_of_state([&](const auto& path) { ASSERT_EQ(::chown(path.c_str(), kService, kService), 0); });
    back_up();
    restore();
    each_of_state([&](const auto& path) {
        struct stat status{};
        ASSERT_EQ(::lstat(path.c_str(), &status), 0);
        EXPECT_EQ(status.st_uid, kService) << path;
    });

    const TempFolder roots;
    write_file(roots.file("shadow"), "secret");
    ASSERT_EQ(::chmod(roots.file("shadow").c_str(), 0600), 0);
    std::filesystem::remove(state_ + ".lock");
    std::filesystem::create_symlink(roots.file("shadow"), state_ + ".lock");
    EXPECT_NE(run({"backup", "--config", config_, folder_.file("other.db")}).exit.code, 0);
    std::filesystem::remove(state_ + ".lock");
    std::filesystem::create_symlink(roots.file("created"), state_ + ".lock");
    EXPECT_NE(run({"backup", "--config", config_, folder_.file("other.db")}).exit.code, 0);
    EXPECT_FALSE(std::filesystem::exists(roots.file("created")));
    EXPECT_EQ(read_file(roots.file("shadow")), "secret");
    struct stat status{};
    ASSERT_EQ(::stat(roots.file("shadow").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 0U);
}

TEST_F(StateFiles, WithoutSnapshotAndLogADamagedFileIsRefusedWithInstructions) {
    run_all();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    manager_->terminate();
    std::filesystem::remove(state_ + ".snapshot");
    std::ofstream(state_, std::ios::in | std::ios::out | std::ios::binary) << std::string(4096, '#');
    const process::Output output = run({"--config", config_});
    EXPECT_EQ(output.exit.code, 1);
    for (const char* part : {"damaged", "restore", "docs/operations.md"})
        EXPECT_NE(output.standard_error.find(part), std::string::npos) << output.standard_error;
    EXPECT_EQ(output.standard_error.find("--recover"), std::string::npos) << "it cannot help";
}

TEST_F(StateFiles, AStateFileThatIsDeletedUnderTheManagerStopsItFromAccepting) {
    run_all();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    std::filesystem::rename(state_, state_ + ".moved");
    const RestAnswer refused = rest_.compose("host1", "256MiB");
    EXPECT_EQ(refused.status, 503U) << refused.body;
    EXPECT_EQ(refused.code(), "storage-failed");
    EXPECT_EQ(rest_.get("/v1/compositions/" + id).status, 200U);
    std::filesystem::rename(state_ + ".moved", state_);
    expect_state(compose("host1"), "Online");
}

}  // namespace
}  // namespace memtide::test
