#include "cxl-emul/rack/guest_program.h"

#include <chrono>
#include <csignal>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

using testing::HasSubstr;

// Runs a program and plays the side that sent the request.
class GuestProgramTest : public testing::Test {
  protected:
    GuestProgramTest() { std::signal(SIGPIPE, SIG_IGN); }  // as the helper does
    void start(std::vector<std::string> argv, std::string folder = "/") {
        ProgramRequest request;
        request.argv = std::move(argv);
        request.working_directory = std::move(folder);
        request.environment["MEMTIDE_TEST"] = "value";
        program_ = GuestProgram::start(
            context_.get_executor(), 1, std::move(request),
            [this](const Frame& frame) {
                EXPECT_EQ(frame.stream, 1U);
                if (frame.type == FrameType::kOutput) output_ += frame.payload;
                if (frame.type == FrameType::kErrorOutput) errors_ += frame.payload;
                if (frame.type == FrameType::kExit) code_ = frame_number(frame).value();
                if (frame.type == FrameType::kCredit) credit_ += frame_number(frame).value();
                const bool data = frame.type == FrameType::kOutput || frame.type == FrameType::kErrorOutput;
                if (data && grant_) owed_ += frame.payload.size();
            },
            [this] { ended_ = true; });
    }
    void run_until(const std::function<bool()>& done) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!done() && std::chrono::steady_clock::now() < deadline) {
            context_.restart();
            context_.run_for(std::chrono::milliseconds(5));
            if (owed_ > 0)
                program_->take(credit_frame(1, static_cast<std::uint32_t>(std::exchange(owed_, 0))));
        }
        EXPECT_TRUE(done());
    }
    std::uint32_t finish() {
        run_until([this] { return ended_; });
        return code_.value_or(9999);
    }

    boost::asio::io_context context_{1};
    std::shared_ptr<GuestProgram> program_;
    std::string output_, errors_;
    std::optional<std::uint32_t> code_;
    std::uint64_t credit_ = 0;
    std::size_t owed_ = 0;
    bool grant_ = true;
    bool ended_ = false;
};

TEST_F(GuestProgramTest, StreamsAreSeparateAndTheExitCodeIsTheProgramsOwn) {
    start({"sh", "-c", "echo out; echo err >&2; exit 7"});
    EXPECT_EQ(finish(), 7U);
    EXPECT_EQ(output_, "out\n");
    EXPECT_EQ(errors_, "err\n");
}

TEST_F(GuestProgramTest, SignalGives128AndItsNumber) {
    start({"sh", "-c", "kill -9 $$"});
    EXPECT_EQ(finish(), 137U);
}

TEST_F(GuestProgramTest, ProgramThatDoesNotExistGives127AndSaysSo) {
    start({"memtide-no-such-program"});
    EXPECT_EQ(finish(), 127U);
    EXPECT_THAT(errors_, HasSubstr("memtide-no-such-program"));
}

TEST_F(GuestProgramTest, FileThatIsNoProgramGives126) {
    start({"/etc/passwd"});
    EXPECT_EQ(finish(), 126U);
}

TEST_F(GuestProgramTest, InputReachesItAndItsEndToo) {
    start({"tr", "a-z", "A-Z"});
    program_->take({FrameType::kInput, 1, "hello "});
    program_->take({FrameType::kInput, 1, "world\n"});
    program_->take({FrameType::kInputEnd, 1, {}});
    EXPECT_EQ(finish(), 0U);
    EXPECT_EQ(output_, "HELLO WORLD\n");
    EXPECT_EQ(credit_, 12U);
}

TEST_F(GuestProgramTest, ProgramThatDoesNotReadItsInputStillGivesCredit) {
    start({"sh", "-c", "exec <&-; sleep 0.2"});
    program_->take({FrameType::kInput, 1, std::string(kWindow, 'x')});
    program_->take({FrameType::kInputEnd, 1, {}});
    EXPECT_EQ(finish(), 0U);
}

TEST_F(GuestProgramTest, OutputStopsWhereTheCreditEnds) {
    grant_ = false;
    start({"sh", "-c", "head -c 1000000 /dev/zero"});
    run_until([this] { return output_.size() == kWindow; });
    context_.restart();
    context_.run_for(std::chrono::milliseconds(50));
    EXPECT_EQ(output_.size(), kWindow);
    grant_ = true;
    program_->take(credit_frame(1, kWindow));
    EXPECT_EQ(finish(), 0U);
    EXPECT_EQ(output_.size(), 1000000U);
}

TEST_F(GuestProgramTest, SignalGoesToTheWholeProcessGroup) {
    start({"sh", "-c", "trap 'exit 3' TERM; echo ready; sleep 600 & wait"});
    run_until([this] { return output_ == "ready\n"; });
    program_->take(number_frame(FrameType::kSignal, 1, SIGTERM));
    EXPECT_EQ(finish(), 3U);
}

TEST_F(GuestProgramTest, BackgroundProcessDoesNotHoldTheEndUp) {
    start({"sh", "-c", "sleep 600 & echo $!"});
    EXPECT_EQ(finish(), 0U);
    ::kill(std::atoi(output_.c_str()), SIGKILL);
}

TEST_F(GuestProgramTest, AbandonedProgramIsKilledEvenIfItIgnoresTheHangUp) {
    start({"sh", "-c", "trap '' HUP; echo ready; while :; do sleep 0.1; done"});
    run_until([this] { return output_ == "ready\n"; });
    program_->abandon();
    EXPECT_EQ(finish(), 137U);
}

TEST_F(GuestProgramTest, EnvironmentAndFolderAreTheRequested) {
    start({"sh", "-c", "echo $MEMTIDE_TEST; pwd"}, "/usr");
    EXPECT_EQ(finish(), 0U);
    EXPECT_EQ(output_, "value\n/usr\n");
}

TEST_F(GuestProgramTest, FolderThatIsNotThereIsTheRootInstead) {
    start({"pwd"}, "/no/such/folder");
    EXPECT_EQ(finish(), 0U);
    EXPECT_EQ(output_, "/\n");
}

}  // namespace
}  // namespace memtide::emul
