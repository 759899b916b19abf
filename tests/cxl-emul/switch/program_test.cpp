#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fmapi/capture/capture.h"
#include "common/fmapi/dialect.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

extern char** environ;

// The program `memtide-cxl-emul switch` from outside.
namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;
using ::testing::HasSubstr;

// A running memtide-cxl-emul.
class Program {
  public:
    explicit Program(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), MEMTIDE_CXL_EMUL);
        std::vector<char*> argv;
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        const auto redirect = [&](int fd, const std::string& path) {
            posix_spawn_file_actions_addopen(&actions, fd, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        };
        redirect(STDOUT_FILENO, out_);
        redirect(STDERR_FILENO, err_);
        if (posix_spawn(&pid_, MEMTIDE_CXL_EMUL, &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
        posix_spawn_file_actions_destroy(&actions);
    }
    ~Program() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            wait();
        }
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void send(int signal) const { kill(pid_, signal); }
    // The exit code, or 1000 + the signal it died of.
    int wait() {
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    // Until the ready line of each listener is there.
    std::vector<std::string> addresses(std::size_t count) {
        const std::string key = " listening on ";
        for (int i = 0; i < 3000; ++i) {
            std::vector<std::string> found;
            std::ifstream file(out_);
            for (std::string line; std::getline(file, line);)
                if (const auto at = line.find(key); at != std::string::npos && !file.eof())
                    found.push_back(line.substr(at + key.size()));
            if (found.size() == count) return found;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        ADD_FAILURE() << "not ready: " << out() << err();
        return std::vector<std::string>(count);
    }
    [[nodiscard]] long resident_kib() const {
        std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
        const std::string key = "VmRSS:";
        for (std::string line; std::getline(status, line);)
            if (line.starts_with(key)) return std::stol(line.substr(key.size()));
        return -1;
    }
    [[nodiscard]] std::string out() const { return content(out_); }
    [[nodiscard]] std::string err() const { return content(err_); }

  private:
    static std::string content(const std::string& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    TemporaryFolder folder_;
    std::string out_ = folder_.path() + "/out";
    std::string err_ = folder_.path() + "/err";
    pid_t pid_ = -1;
};

class SwitchProgram : public ::testing::Test {
  protected:
    TemporaryFolder folder_;
    const std::string file_ = folder_.path() + "/rack.yaml";

    void SetUp() override { write(test_topology(folder_.path())); }
    void write(const std::string& text) const { std::ofstream(file_) << text; }
    void replace(const std::string& what, const std::string& by) const {
        std::string text = test_topology(folder_.path());
        text.replace(text.find(what), what.size(), by);
        write(text);
    }
    static std::string topology_listening_on(const std::string& address, const std::string& media) {
        std::string text = test_topology(media);
        const std::string listeners = "\"tcp://127.0.0.1:0\", \"unix://" + media + "/switch0.sock\"";
        return text.replace(text.find(listeners), listeners.size(), "\"" + address + "\"");
    }
};

TEST_F(SwitchProgram, SaysWhereItListensAndEndsCleanlyOnSigterm) {
    Program program({"switch", file_});
    const auto addresses = program.addresses(2);
    EXPECT_THAT(program.out(), HasSubstr("switch0 listening on tcp://127.0.0.1:"));
    EXPECT_EQ(addresses[1], "unix://" + folder_.path() + "/switch0.sock");
    Manager manager(addresses[0]);
    EXPECT_EQ(manager.get<fmapi::Identify>().serial, 0x5357U);
    program.send(SIGTERM);
    EXPECT_EQ(program.wait(), 0);
    EXPECT_TRUE(manager.is_dropped());
    EXPECT_NE(access((folder_.path() + "/switch0.sock").c_str(), F_OK), 0);
}

TEST_F(SwitchProgram, KilledItLeavesAReadableCaptureOfEveryFraming) {
    for (const char* const dialect : {"spec", "true-length", "framed", "framed-big-endian"}) {
        const std::string pcap = fmt::format("{}/{}.pcap", folder_.path(), dialect);
        replace("serial: 0x5357", fmt::format("serial: 0x5357\n    dialect: {}", dialect));
        Program program({"switch", file_, "--pcap", pcap});
        {
            Manager manager(program.addresses(2)[0], fmapi::find_dialect(dialect)->wire);
            EXPECT_EQ(manager.get<fmapi::Identify>().serial, 0x5357U);
            EXPECT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
        }
        program.send(SIGKILL);
        program.wait();
        const auto capture = fmapi::read_capture_file(pcap);
        ASSERT_TRUE(capture) << dialect << ": " << capture.error().message;
        ASSERT_GE(capture->messages.size(), 4U) << dialect;
        for (std::size_t i = 0; i < capture->messages.size(); ++i) {
            const auto& [time, source, destination, type, message, answers, error] = capture->messages[i];
            ASSERT_TRUE(message) << dialect << ": " << error;
            EXPECT_EQ(message->is_response, i % 2 == 1);
            if (i % 2 == 1) {
                EXPECT_EQ(answers, i - 1);
            }
        }
        EXPECT_EQ(capture->messages[0].message->opcode, fmapi::Opcode::kIdentify);
        EXPECT_EQ(capture->messages[2].message->opcode, fmapi::Opcode::kBindVppb);
    }
}

TEST_F(SwitchProgram, ACaptureThatCannotBeWrittenIsRefusedAtTheStart) {
    Program program({"switch", file_, "--pcap", "/nowhere/x.pcap"});
    EXPECT_EQ(program.wait(), 1);
    EXPECT_THAT(program.err(), HasSubstr("--pcap: write to /nowhere/x.pcap: "));
    Program hosts({"hosts", "--count", "1", "--pcap", "/nowhere/x.pcap"});
    EXPECT_EQ(hosts.wait(), 1);
    EXPECT_THAT(hosts.err(), HasSubstr("--pcap: write to /nowhere/x.pcap: "));
}

TEST_F(SwitchProgram, KilledItStartsAgainWithTheSameMedia) {
    {
        Program program({"switch", file_});
        Manager manager(program.addresses(2)[1]);
        ASSERT_EQ(manager.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
        write_file(folder_.path() + "/memtide-test-mld0.media", 4242, "kept");
        program.send(SIGKILL);
        EXPECT_EQ(program.wait(), 1000 + SIGKILL);
    }
    Program program({"switch", file_});
    Manager manager(program.addresses(2)[1]);  // the socket that the dead one left is no obstacle
    EXPECT_EQ(manager.vppb(0, 0).binding, fmapi::VppbBinding::kUnbound);
    EXPECT_EQ(read_file(folder_.path() + "/memtide-test-mld0.media", 4242, 4), "kept");
}

// Sanitizers keep a lot of memory of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(SwitchProgram, With256LdsAnIdleSwitchTakesLessThan16MiB) {
    std::string ports = "{id: 0, host: host0}";
    std::string devices;
    for (int i = 0; i < 16; ++i) {
        ports += fmt::format(", {{id: {}, device: mld{}}}", i + 1, i);
        devices +=
            fmt::format("      - {{name: mld{}, kind: mld, serial: {:#x}, size: 4GiB, lds: [{}256MiB]}}\n", i,
                        0x4d540000 + 256 * i, [] {
                            std::string lds;
                            for (int ld = 0; ld < 15; ++ld) lds += "256MiB, ";
                            return lds;
                        }());
    }
    write(
        fmt::format("name: large\nswitches:\n  - name: switch0\n    listen: [\"unix://{0}/s.sock\"]\n"
                    "    media: {0}\n    ports: [{1}]\n"
                    "    vcss: [{{id: 0, upstream_port: 0, vppbs: 255}}]\n    devices:\n{2}",
                    folder_.path(), ports, devices));
    Program program({"switch", file_});
    Manager manager(program.addresses(1)[0]);
    ASSERT_EQ(manager.bind(0, 254, 16, 15), ReturnCode::kSuccess);
    const long resident = program.resident_kib();
    EXPECT_GT(resident, 0);
    EXPECT_LT(resident, 16 * 1024);
}
#endif

TEST_F(SwitchProgram, RefusesAPortInUse) {
    Program first({"switch", file_});
    const std::string address = first.addresses(2)[0];
    TemporaryFolder other_media;
    write(topology_listening_on(address, other_media.path()));
    Program second({"switch", file_});
    EXPECT_EQ(second.wait(), 1);
    EXPECT_THAT(second.err(), HasSubstr("switch switch0: listen on " + address + ": already in use"));
}

TEST_F(SwitchProgram, RefusesTheSocketOfALivingOne) {
    Program first({"switch", file_});
    const std::string address = first.addresses(2)[1];
    TemporaryFolder other_media;
    write(topology_listening_on(address, other_media.path()));
    Program second({"switch", file_});
    EXPECT_EQ(second.wait(), 1);
    EXPECT_THAT(second.err(), HasSubstr("listen on " + address + ": already in use"));
    Manager manager(address);
    EXPECT_EQ(manager.get<fmapi::Identify>().serial, 0x5357U);
}

TEST_F(SwitchProgram, RefusesTheMediaOfALivingOne) {
    Program first({"switch", file_});
    first.addresses(2);
    replace(folder_.path() + "/switch0.sock", folder_.path() + "/another.sock");
    Program second({"switch", file_});
    EXPECT_EQ(second.wait(), 1);
    EXPECT_THAT(second.err(), HasSubstr("in use by another switch"));
}

TEST_F(SwitchProgram, DoesNotReplaceAFileThatIsNoSocket) {
    std::ofstream(folder_.path() + "/switch0.sock") << "precious";
    Program program({"switch", file_});
    EXPECT_EQ(program.wait(), 1);
    EXPECT_THAT(program.err(), HasSubstr("there is a file that is no socket"));
    EXPECT_EQ(read_file(folder_.path() + "/switch0.sock", 0, 8), "precious");
}

TEST_F(SwitchProgram, ConfigErrorsHaveAPlaceAndExitCode2) {
    replace("kind: sld", "kind: xld");
    Program program({"switch", file_});
    EXPECT_EQ(program.wait(), 2);
    EXPECT_EQ(program.err(), file_ + ":27:28: \"xld\" is none of sld, mld and dcd\n");
}

TEST_F(SwitchProgram, CheckConfigOnlyChecks) {
    Program good({"switch", file_, "--check-config"});
    EXPECT_EQ(good.wait(), 0);
    EXPECT_NE(access((folder_.path() + "/memtide-test-mld0.media").c_str(), F_OK), 0);
    replace("size: 1GiB", "size: 1GB");
    Program bad({"switch", file_, "--check-config"});
    EXPECT_EQ(bad.wait(), 2);
    EXPECT_THAT(bad.err(), HasSubstr(file_ + ":23:15: "));
}

TEST_F(SwitchProgram, TopologyWithoutSwitchesNamesTheCommandForIt) {
    const std::string file = MEMTIDE_CONFIG "/topologies/direct-one-host.yaml";
    for (std::vector<std::string> words :
         {std::vector<std::string>{"switch", file}, {"switch", file, "--check-config"}}) {
        Program program(words);
        EXPECT_EQ(program.wait(), 2);
        EXPECT_EQ(program.err(),
                  file + ": this topology has no switches; `memtide rack up " + file + "` runs its hosts\n");
    }
}

TEST_F(SwitchProgram, UnknownSwitchNameIsRefused) {
    Program program({"switch", file_, "--name", "switch9"});
    EXPECT_EQ(program.wait(), 2);
    EXPECT_THAT(program.err(), HasSubstr("there is no switch \"switch9\""));
}

TEST_F(SwitchProgram, BadUsageHasExitCode2) {
    Program program({"switch"});
    EXPECT_EQ(program.wait(), 2);
    Program nothing(std::vector<std::string>{});
    EXPECT_EQ(nothing.wait(), 2);
}

TEST_F(SwitchProgram, MissingMediaFolderIsNamed) {
    replace("media: " + folder_.path(), "media: " + folder_.path() + "/none");
    Program program({"switch", file_});
    EXPECT_EQ(program.wait(), 1);
    EXPECT_THAT(program.err(), HasSubstr("/none/memtide-test-mld0.media: its folder does not exist"));
}

}  // namespace
}  // namespace memtide::emul::test
