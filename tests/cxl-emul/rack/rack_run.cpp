#include "tests/cxl-emul/rack/rack_run.h"

#include <filesystem>
#include <fstream>

#include <boost/json/parse.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

namespace memtide::emul {
namespace fs = std::filesystem;
using std::chrono::steady_clock;

namespace {

// Boots share the machine with whatever else is tested.
constexpr auto kPatience = std::chrono::seconds(300);

std::string temporary_folder(const char* pattern) {
    std::string name = pattern;
    EXPECT_NE(::mkdtemp(name.data()), nullptr) << name;
    return name;
}

// A zombie has ended, too.
bool runs(int pid) {
    std::ifstream in(fmt::format("/proc/{}/stat", pid));
    std::string line;
    if (!std::getline(in, line)) return false;
    const auto state = line.rfind(") ");
    return state != std::string::npos && line[state + 2] != 'Z' && line[state + 2] != 'X';
}

}  // namespace

std::string RackRun::missing() {
    if (std::system("command -v qemu-system-x86_64 >/dev/null 2>&1") != 0)
        return "qemu-system-x86_64 is not installed";
    const char* cache = std::getenv("MEMTIDE_CACHE");
    const auto version = std::string(cache ? cache : "/var/cache/memtide") + "/guest/version";
    if (!fs::exists(version)) return "there is no guest kernel (" + version + "); run scripts/setup";
    if (std::system("command -v cxl numactl >/dev/null 2>&1") != 0)
        return "cxl (ndctl) and numactl are not installed";
    return {};
}

RackRun::RackRun(RackRunOptions options)
    : options_(std::move(options)),
      folder_(temporary_folder("/tmp/memtide-rack-XXXXXX")),
      media_(temporary_folder("/dev/shm/memtide-rack-XXXXXX")) {
    write_topology("unix://" + folder_ + "/switch0.sock");
}

RackRun::~RackRun() {
    if (fs::exists(run_folder() + "/control.sock")) rack("down", {});
    if (testing::Test::HasFailure()) {
        std::fprintf(stderr, "the rack's logs are in %s\n", run_folder().c_str());
    } else {
        fs::remove_all(folder_);
    }
    fs::remove_all(media_);
}

void RackRun::write_topology(const std::string& listen) const {
    std::ofstream out(topology());
    out << fmt::format(
        "name: test\nswitches:\n  - name: switch0\n    listen: [\"{}\"]\n    media: {}\n    ports:\n", listen,
        media_);
    for (int i = 0; i < options_.hosts; ++i) out << fmt::format("      - {{id: {}, host: host{}}}\n", i, i);
    out << "      - {id: 9, device: mld0}\n    vcss:\n";
    for (int i = 0; i < options_.hosts; ++i)
        out << fmt::format("      - {{id: {}, upstream_port: {}, vppbs: 2}}\n", i, i);
    out << "    devices:\n"
           "      - {name: mld0, kind: mld, serial: 0x4d54000100000000, size: 1GiB, lds: [256MiB, 256MiB, 0, "
           "0]}\n"
           "hosts:\n";
    for (int i = 0; i < options_.hosts; ++i)
        out << fmt::format("  - {{name: host{}, memory: 768MiB, cpus: 1}}\n", i);
    if (options_.network) out << "networks:\n  - {name: rdma0, hosts: [host0, host1]}\n";
}

process::Command RackRun::command(const std::string& action, std::vector<std::string> words) const {
    process::Command command;
    command.argv = {MEMTIDE_CXL_EMUL, "rack", action, topology(), "--run-dir", run_folder()};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    return command;
}

process::Output RackRun::rack(const std::string& action, std::vector<std::string> words, std::string input) {
    auto output = process::run(command(action, std::move(words)), kPatience, input);
    EXPECT_TRUE(output) << action << ": " << output.error().message;
    return output.value_or(process::Output());
}

process::Output RackRun::up(std::vector<std::string> more) {
    if (!options_.manager.empty()) more.insert(more.end(), {"--manager", options_.manager});
    // Nothing is left of the rack even if this process is killed.
    more.insert(more.end(), {"--while", std::to_string(::getpid())});
    return rack("up", std::move(more));
}

process::Output RackRun::exec(const std::string& host, std::vector<std::string> words, std::string input) {
    words.insert(words.begin(), {host, "--"});
    return rack("exec", std::move(words), std::move(input));
}

std::string RackRun::shell(const std::string& script) {
    auto output = exec("host0", {"sh", "-c", script});
    EXPECT_EQ(output.exit.code, 0) << script << "\n" << output.standard_error;
    auto text = output.standard_output;
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

void RackRun::inject(std::vector<std::string> words) {
    process::Command inject;
    inject.argv = {MEMTIDE_CXL_EMUL, "fault", "inject", "--control", "unix:" + run_folder() + "/faults.sock"};
    inject.argv.insert(inject.argv.end(), words.begin(), words.end());
    const auto output = process::run(inject, kPatience);
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_EQ(output->exit.code, 0) << output->standard_error;
}

boost::json::value RackRun::status() {
    const auto output = rack("status", {"--json"});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    boost::system::error_code error;
    auto value = boost::json::parse(output.standard_output, error);
    EXPECT_FALSE(error) << output.standard_output;
    return value;
}

boost::json::value RackRun::host_status(int host) {
    return status().at("hosts").as_array().at(static_cast<std::size_t>(host));
}

bool RackRun::wait_for(const std::string& condition) {
    const auto script =
        fmt::format("for i in $(seq 600); do if {}; then exit 0; fi; sleep 0.1; done; exit 1", condition);
    return exec("host0", {"sh", "-c", script}).exit.code == 0;
}

bool RackRun::all_gone(const std::vector<int>& pids) {
    const auto deadline = steady_clock::now() + std::chrono::seconds(60);
    for (const int pid : pids) {
        while (runs(pid)) {
            if (steady_clock::now() >= deadline) return false;
            ::usleep(10'000);
        }
    }
    return true;
}

}  // namespace memtide::emul
