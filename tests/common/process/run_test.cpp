#include <gtest/gtest.h>

#include "common/process/child.h"

namespace memtide::process {
namespace {

using namespace std::chrono_literals;

Command shell(std::string script) {
    Command command;
    command.argv = {"sh", "-c", std::move(script)};
    return command;
}

TEST(Run, CollectsBothOutputsAndTheExitCode) {
    const auto output = run(shell("echo out; echo err >&2; exit 4"), 30s);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->standard_output, "out\n");
    EXPECT_EQ(output->standard_error, "err\n");
    EXPECT_EQ(output->exit.code, 4);
}

TEST(Run, FeedsInputLargerThanAPipeHolds) {
    const std::string input(1 << 20, 'x');
    const auto output = run(shell("cat"), 30s, input);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->standard_output, input);
}

TEST(Run, SurvivesACommandThatDoesNotReadItsInput) {
    const auto output = run(shell("exec <&-; echo done"), 30s, std::string(1 << 20, 'x'));
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->standard_output, "done\n");
}

TEST(Run, DropsWhatIsBeyondItsBound) {
    const auto output = run(shell("head -c 20000000 /dev/zero"), 60s);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->standard_output.size(), 16U << 20);
    EXPECT_TRUE(output->exit.succeeded());
}

TEST(Run, KillsACommandThatTakesTooLong) {
    const auto output = run(shell("exec sleep 600"), 50ms);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code, ErrorCode::kTimeout);
}

TEST(Run, CommandThatCannotStartFails) {
    Command command;
    command.argv = {"no-such-program-here"};
    EXPECT_EQ(run(command, 1s).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace memtide::process
