// What `rack` refuses before it starts anything. No QEMU runs here.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "common/process/child.h"

namespace memtide::emul {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kTopology = MEMTIDE_CONFIG "/topologies/direct-one-host.yaml";

class RackCommand : public testing::Test {
  protected:
    RackCommand() {
        std::string name = testing::TempDir() + "rack-command-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~RackCommand() override {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    process::Output rack(std::vector<std::string> words) {
        process::Command command;
        command.argv = {MEMTIDE_CXL_EMUL, "rack"};
        command.argv.insert(command.argv.end(), words.begin(), words.end());
        command.argv.insert(command.argv.begin() + 4, {"--run-dir", folder_ + "/run"});
        command.environment = environment_;
        auto output = process::run(command, std::chrono::seconds(60));
        EXPECT_TRUE(output) << output.error().message;
        return output.value_or(process::Output());
    }
    // One host with two devices of its own, media in the folder of the test.
    [[nodiscard]] std::string write_topology(const std::string& more = "cpus: 1") const {
        const auto path = folder_ + "/topology.yaml";
        std::ofstream(path) << "name: wiped\nhosts:\n  - name: host0\n    " << more
                            << "\n    media: " << folder_
                            << "\n    devices:\n      - {name: memory0, serial: 1, size: 256MiB}\n"
                               "      - {name: memory1, serial: 2, size: 256MiB}\n";
        return path;
    }
    std::string folder_;
    std::map<std::string, std::optional<std::string>> environment_;
};

TEST_F(RackCommand, MissingQemuNamesTheSetup) {
    environment_["PATH"] = "/nonexistent";
    const auto output = rack({"up", kTopology});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_THAT(output.standard_error,
                HasSubstr("qemu-system-x86_64 is not installed; scripts/setup installs it"));
    EXPECT_FALSE(fs::exists(folder_ + "/run"));
}

TEST_F(RackCommand, MissingKernelNamesThePlaceAndTheSetup) {
    fs::create_directories(folder_ + "/bin");
    fs::create_symlink("/bin/true", folder_ + "/bin/qemu-system-x86_64");
    environment_["PATH"] = folder_ + "/bin";
    environment_["MEMTIDE_CACHE"] = folder_;
    const auto output = rack({"up", kTopology});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_THAT(output.standard_error, HasSubstr("no guest kernel in " + folder_ + "; run scripts/setup"));
}

TEST_F(RackCommand, TopologyWithAMistakeShowsWhere) {
    const auto output = rack({"up", "/no/such/file.yaml"});
    EXPECT_EQ(output.exit.code, 2);
    EXPECT_THAT(output.standard_error, HasSubstr("/no/such/file.yaml"));
}

TEST_F(RackCommand, ManagerBeyondThisMachineIsRefused) {
    const auto output = rack({"up", kTopology, "--manager", "192.0.2.1:8080"});
    EXPECT_EQ(output.exit.code, 2);
    EXPECT_THAT(output.standard_error, HasSubstr("no loopback address"));
}

TEST_F(RackCommand, ProcessThatDoesNotExistCannotBeWaitedFor) {
    const auto output = rack({"up", kTopology, "--while", "99999999"});
    EXPECT_EQ(output.exit.code, 2);
    EXPECT_THAT(output.standard_error, HasSubstr("--while 99999999: there is no such process"));
}

TEST_F(RackCommand, CommandsForARackThatIsNotUpSaySo) {
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"status", kTopology}, {"bind", kTopology, "host0", "0", "x"}}) {
        const auto output = rack(words);
        EXPECT_EQ(output.exit.code, 1) << words[0];
        EXPECT_THAT(output.standard_error, HasSubstr("no rack runs in " + folder_ + "/run")) << words[0];
    }
}

TEST_F(RackCommand, DownOfARackThatIsNotUpHasNothingToDo) {
    const auto output = rack({"down", kTopology});
    EXPECT_EQ(output.exit.code, 0);
    EXPECT_EQ(output.standard_output, "nothing to stop: no rack runs in " + folder_ + "/run\n");
}

TEST_F(RackCommand, WipeRemovesTheTopologysMediaAndNothingElse) {
    const auto topology = write_topology();
    const auto media = folder_ + "/memtide-wiped-memory0.media";
    const auto linked = folder_ + "/memtide-wiped-memory1.media";
    const auto other = folder_ + "/memtide-other-memory0.media";
    for (const auto& file : {media, other}) std::ofstream(file) << "bytes";
    fs::create_symlink(other, linked);
    const auto output = rack({"down", topology, "--wipe"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_THAT(output.standard_output, HasSubstr("removed " + media + "\n"));
    EXPECT_THAT(output.standard_error, HasSubstr(linked + ": it is a symbolic link"));
    EXPECT_FALSE(fs::exists(media));
    EXPECT_TRUE(fs::is_symlink(linked));
    EXPECT_TRUE(fs::exists(other));

    fs::remove(linked);
    const auto again = rack({"down", topology, "--wipe"});
    EXPECT_EQ(again.exit.code, 0) << again.standard_error;
}

TEST_F(RackCommand, MistypedCommandsAndOptionsAreNamed) {
    const auto command = rack({"ups", kTopology});
    EXPECT_EQ(command.exit.code, 2);
    EXPECT_THAT(command.standard_error, HasSubstr("unknown command \"ups\"; did you mean \"up\"?"));
    const auto option = rack({"up", kTopology, "--chek-config"});
    EXPECT_EQ(option.exit.code, 2);
    EXPECT_THAT(option.standard_error,
                HasSubstr("unknown option \"--chek-config\"; did you mean \"--check-config\"?"));
}

TEST_F(RackCommand, CheckConfigOnlyChecks) {
    environment_["PATH"] = "/nonexistent";
    const auto good = rack({"up", kTopology, "--check-config"});
    EXPECT_EQ(good.exit.code, 0) << good.standard_error;
    EXPECT_EQ(good.standard_output, std::string(kTopology) + ": ok\n");
    EXPECT_FALSE(fs::exists(folder_ + "/run"));
    const auto bad = rack({"up", write_topology("cpus: none"), "--check-config"});
    EXPECT_EQ(bad.exit.code, 2);
    EXPECT_THAT(bad.standard_error, HasSubstr("topology.yaml:4:"));
}

TEST_F(RackCommand, ListIsOfThoseThatRun) {
    environment_["XDG_RUNTIME_DIR"] = folder_;
    process::Command command;
    command.argv = {MEMTIDE_CXL_EMUL, "rack", "list", "--json"};
    command.environment = environment_;
    const auto output = process::run(command, std::chrono::seconds(60));
    ASSERT_TRUE(output);
    EXPECT_EQ(output->exit.code, 0);
    EXPECT_THAT(output->standard_output, testing::StartsWith("["));
}

TEST_F(RackCommand, ExecThatCannotBeAskedForIsNotTakenForTheCommandsExit) {
    EXPECT_EQ(rack({"exec", kTopology, "host0", "--", "true"}).exit.code, 125);
}

TEST_F(RackCommand, UsageMistakeGives2) {
    EXPECT_EQ(rack({"unbind", kTopology, "host0", "0", "--surprise", "--managed"}).exit.code, 2);
    EXPECT_EQ(rack({"dance", kTopology}).exit.code, 2);
}

}  // namespace
}  // namespace memtide::emul
