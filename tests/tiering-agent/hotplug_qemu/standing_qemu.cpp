#include "tests/tiering-agent/hotplug_qemu/standing_qemu.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace memtide::agent {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    while (text.ends_with('\n')) text.pop_back();
    return text;
}

std::string last_lines(const std::string& text, std::size_t count) {
    std::size_t begin = text.size();
    for (; count > 0 && begin != std::string::npos && begin != 0; --count)
        begin = text.rfind('\n', begin - 1);
    return begin == std::string::npos ? text : text.substr(begin);
}

// Its child that is a QEMU; empty when there is none.
std::string qemu_of(const std::string& supervisor) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
        if (!contents(entry.path() / "comm").starts_with("qemu-system")) continue;
        const std::string stat = contents(entry.path() / "stat");
        std::istringstream in(stat.substr(stat.rfind(')') + 1));
        std::string state;
        std::string parent;
        if (in >> state >> parent && parent == supervisor) return entry.path().filename();
    }
    return {};
}

std::string threads_of(const std::string& pid) {
    std::string text;
    std::error_code gone;
    for (const auto& task : fs::directory_iterator("/proc/" + pid + "/task", gone))
        text += fmt::format("{} {}: state and counters {}, in {}, system call {}\n",
                            task.path().filename().string(), contents(task.path() / "comm"),
                            contents(task.path() / "stat").substr(0, 120), contents(task.path() / "wchan"),
                            contents(task.path() / "syscall"));
    return text;
}

// What the monitor says to a greeting and a question, within five seconds.
std::string monitor(const std::string& socket_path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
    std::string said;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        const std::string asked = R"({"execute":"qmp_capabilities"}
{"execute":"human-monitor-command","arguments":{"command-line":"info registers -a"}}
)";
        (void)send(fd, asked.data(), asked.size(), MSG_NOSIGNAL);
        pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
        char buffer[65536];
        while (poll(&readable, 1, 5000) == 1) {
            const ssize_t got = read(fd, buffer, sizeof buffer);
            if (got <= 0) break;
            said.append(buffer, static_cast<std::size_t>(got));
        }
    }
    close(fd);
    return said.empty() ? "does not answer" : said;
}

}  // namespace

std::string where_qemu_stands(const std::string& supervisor_pid, const std::string& host_folder) {
    const std::string qemu = qemu_of(contents(supervisor_pid));
    return fmt::format("console:{}\nthreads of QEMU {}:\n{}monitor: {}\n",
                       last_lines(contents(host_folder + "/serial.log"), 15), qemu, threads_of(qemu),
                       monitor(host_folder + "/qmp.sock"));
}

}  // namespace memtide::agent
