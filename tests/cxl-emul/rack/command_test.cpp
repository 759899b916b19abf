// What `rack` refuses before it starts anything. No QEMU runs here.
#include <filesystem>

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
    for (const std::vector<std::string>& words : {std::vector<std::string>{"status", kTopology},
                                                  {"down", kTopology},
                                                  {"bind", kTopology, "host0", "0", "x"}}) {
        const auto output = rack(words);
        EXPECT_EQ(output.exit.code, 1) << words[0];
        EXPECT_THAT(output.standard_error, HasSubstr("no rack runs in " + folder_ + "/run")) << words[0];
    }
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
