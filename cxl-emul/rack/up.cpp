#include "cxl-emul/rack/up.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <vector>

#include <boost/json/object.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "common/daemon/exit_code.h"
#include "common/log/log.h"
#include "common/terminal/progress_line.h"
#include "cxl-emul/qemu/command_line.h"
#include "cxl-emul/qemu/guest_image.h"
#include "cxl-emul/rack/control_client.h"
#include "cxl-emul/rack/down.h"
#include "cxl-emul/rack/loopback_address.h"
#include "cxl-emul/rack/messages.h"
#include "cxl-emul/rack/rack_plan.h"
#include "cxl-emul/rack/report.h"
#include "cxl-emul/rack/run_folder.h"
#include "cxl-emul/rack/status_text.h"
#include "cxl-emul/rack/supervisor.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {
namespace fs = std::filesystem;
using std::chrono::steady_clock;

namespace {

constexpr const char* kAgentProgram = "memtide-tiering-agent";
volatile std::sig_atomic_t interrupted = 0;  // the signal that wants us gone
extern "C" void note_interrupt(int signal) { interrupted = signal; }

bool in_path(const std::string& program) {
    const char* path = std::getenv("PATH");
    std::string_view rest = path ? path : "/usr/bin:/bin";
    while (!rest.empty()) {
        const auto end = std::min(rest.find(':'), rest.size());
        if (::access(fmt::format("{}/{}", rest.substr(0, end), program).c_str(), X_OK) == 0) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

Result<std::vector<std::string>> agent_command(const UpOptions& options, const std::string& program) {
    if (!options.agent) return std::vector<std::string>();
    if (options.manager.empty())
        return fail(ErrorCode::kInvalidArgument,
                    "--agent needs --manager: an agent reports to a fabric manager");
    const auto agent = fs::path(program).parent_path() / kAgentProgram;
    if (::access(agent.c_str(), X_OK) != 0)
        return fail(ErrorCode::kNotFound,
                    fmt::format("no {} beside {}; build it first", kAgentProgram, program));
    if (options.agent_certs.empty())
        return std::vector<std::string>{agent.string(), "--manager", kManagerUrlInGuest};
    // Guests see this machine's files; each agent has a certificate of its own.
    const fs::path folder = fs::absolute(options.agent_certs);
    const std::string own = (folder / "agent-").string() + std::string(kHostInAgentCommand);
    return std::vector<std::string>{agent.string(),
                                    "--manager",
                                    kSecureManagerUrlInGuest,
                                    "--ca",
                                    (folder / "ca.pem").string(),
                                    "--cert",
                                    own + ".pem",
                                    "--key",
                                    own + ".key"};
}

Result<> need_hosts(const UpOptions& options, const Topology& topology) {
    if (!topology.hosts.empty()) return {};
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{} has no hosts; to run its switches alone: memtide-cxl-emul switch", options.topology));
}

// Everything that can be said about a rack without this machine.
int check_hosts(const UpOptions& options, const Topology& topology) {
    auto checked = need_hosts(options, topology);
    for (const auto& host : topology.hosts) {
        if (!checked) break;
        auto plan = plan_host(topology, host, {}, "/run/memtide");
        if (!plan) checked = std::unexpected(std::move(plan.error()).with_context("host " + host.name.value));
    }
    if (!checked) {
        report(checked.error());
        return daemon::kExitUsage;
    }
    std::cout << options.topology << ": ok\n";
    return daemon::kExitOk;
}

// Everything that can be known to be missing before anything is started.
Result<RackOptions> prepare(const UpOptions& options, Topology topology) {
    RackOptions rack;
    rack.topology = std::move(topology);
    rack.topology_path = fs::absolute(options.topology).string();
    if (auto there = need_hosts(options, rack.topology); !there) return std::unexpected(there.error());
    if (!options.manager.empty()) {
        if (auto address = parse_loopback_address(options.manager); !address)
            return std::unexpected(address.error());
        rack.manager = options.manager;
    }
    if (!in_path("qemu-system-x86_64")) {
        return fail(ErrorCode::kNotFound,
                    "qemu-system-x86_64 is not installed; scripts/setup installs it (QEMU 10 is needed)");
    }
    for (const HostConfig& host : rack.topology.hosts) {
        if (rack.materials.contains(host.kernel)) continue;
        auto material = find_guest_material(host.kernel);
        if (!material) return std::unexpected(material.error());
        rack.materials.emplace(host.kernel, *std::move(material));
    }
    std::error_code error;
    rack.program = fs::read_symlink("/proc/self/exe", error).string();
    if (error) return fail_errno("read", "/proc/self/exe", error.value());
    auto agent = agent_command(options, rack.program);
    if (!agent) return std::unexpected(agent.error());
    rack.agent = std::move(*agent);
    if (!options.agent_certs.empty()) rack.manager_url = kSecureManagerUrlInGuest;
    rack.kernel_arguments = options.kernel_arguments;
    rack.kvm_allowed = !options.no_kvm;
    rack.while_process = options.while_process;
    if (!options.pcap.empty()) rack.pcap = fs::absolute(options.pcap).string();
    if (options.while_process != 0 && ::kill(options.while_process, 0) != 0 && errno != EPERM) {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("--while {}: there is no such process", options.while_process));
    }
    return rack;
}

// The supervisor's side of fork(2): a session of its own, output to its log, away from the caller's folder.
// Tells how its start went through `tell`.
[[noreturn]] void become_supervisor(RackOptions options, RunFolder folder, int tell) {
    ::setsid();
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    const int null = ::open("/dev/null", O_RDWR);
    const int log = ::open(folder.log().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(null, STDIN_FILENO);
    ::dup2(log >= 0 ? log : null, STDOUT_FILENO);
    ::dup2(log >= 0 ? log : null, STDERR_FILENO);
    if (null > STDERR_FILENO) ::close(null);
    if (log > STDERR_FILENO) ::close(log);
    static_cast<void>(folder.record_pid(::getpid()));
    if (::chdir("/") != 0) ::_exit(daemon::kExitFailure);
    int code = daemon::kExitFailure;
    try {
        code = run_supervisor(std::move(options), std::move(folder), [tell](const Result<>& opened) {
            const std::string words = opened ? "ok" : opened.error().message;
            [[maybe_unused]] const auto written = ::write(tell, words.data(), words.size());
            ::close(tell);
        });
    } catch (const std::exception& e) {
        log::error("supervisor failed", {{"error", e.what()}});
    }
    std::_Exit(code);
}

// Forks the supervisor; returns when it serves, or why it does not.
Result<> start_supervisor(RackOptions options, RunFolder folder) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail_errno("pipe", "to the supervisor", errno);
    std::cout.flush();
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno("fork", "the supervisor", errno);
    if (pid == 0) {
        ::close(pipe[0]);
        become_supervisor(std::move(options), std::move(folder), pipe[1]);
    }
    ::close(pipe[1]);
    std::string words;
    std::array<char, 4096> chunk{};
    for (;;) {
        const auto n = ::read(pipe[0], chunk.data(), chunk.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        words.append(chunk.data(), static_cast<std::size_t>(n));
    }
    ::close(pipe[0]);
    if (words == "ok") return {};
    if (words.empty()) words = "the supervisor ended at once; see " + folder.log();
    return fail(ErrorCode::kUnavailable, words);
}

Result<boost::json::object> watch_boot(const std::string& folder, std::uint64_t seconds) {
    auto client = ControlClient::connect(folder);
    if (!client) return std::unexpected(client.error());
    auto sent = client->send(request(1, {{"op", "wait"}, {"seconds", seconds}}));
    if (!sent) return std::unexpected(sent.error());
    ProgressLine progress;
    for (;;) {
        if (interrupted != 0) return fail(ErrorCode::kCancelled, "interrupted");
        pollfd wait{client->descriptor(), POLLIN, 0};
        ::poll(&wait, 1, 200);
        auto frame = client->receive_if_there();
        if (!frame) return std::unexpected(frame.error());
        if (!*frame) continue;
        if ((*frame)->type == FrameType::kProgress) {
            if (auto status = parse_message(**frame)) progress.show(boot_progress_text(*status));
        } else if ((*frame)->type == FrameType::kReply) {
            auto status = read_reply(**frame);
            if (status) progress.show(boot_progress_text(*status));
            return status;
        }
    }
}

int give_up(const std::string& folder, const Error& error) {
    if (interrupted == 0) report(error);
    if (auto client = ControlClient::connect(folder)) static_cast<void>(client->ask({{"op", "down"}}));
    wait_until_released(folder);
    note((interrupted != 0 ? "interrupted, and taken down again; logs are in "
                           : "taken down again; logs are in ") +
         folder);
    return interrupted != 0 ? 128 + interrupted : daemon::kExitFailure;
}

}  // namespace

int run_up(const UpOptions& options) {
    auto topology = load_topology(options.topology);
    if (!topology) {
        std::cerr << topology.error().message << '\n';
        return daemon::kExitUsage;
    }
    auto scenario = chosen_scenario(options.scenario, *topology);
    if (!scenario) {
        std::cerr << scenario.error().message << '\n';
        return daemon::kExitUsage;
    }
    if (options.check_config) return check_hosts(options, *topology);
    const auto path = options.run_folder.empty() ? RunFolder::default_path(topology->name)
                                                 : fs::absolute(options.run_folder).string();
    auto rack = prepare(options, std::move(*topology));
    auto folder = rack ? RunFolder::claim(path) : std::unexpected(rack.error());
    if (!folder) {
        report(folder.error());
        return folder.error().code == ErrorCode::kInvalidArgument ? daemon::kExitUsage : daemon::kExitFailure;
    }
    if (::geteuid() != 0) {
        note(
            "not root: the hosts see only those files of this machine that you may read, and KVM only if you "
            "may open /dev/kvm");
    }
    rack->scenario = *std::move(scenario);
    rack->scenario_speed = options.scenario.speed;
    const auto name = rack->topology.name;
    std::signal(SIGINT, note_interrupt);
    std::signal(SIGTERM, note_interrupt);
    auto started = start_supervisor(std::move(*rack), std::move(*folder));
    if (!started) return report(started.error());
    auto status = watch_boot(path, options.timeout_seconds);
    if (!status) return give_up(path, status.error());
    std::cout << fmt::format("rack {} is up, {}: {}\nrun folder: {}\n", name, accelerator_text(*status),
                             boot_progress_text(*status), path);
    return daemon::kExitOk;
}

}  // namespace memtide::emul
