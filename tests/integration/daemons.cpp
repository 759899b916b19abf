#include "tests/integration/daemons.h"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tests/integration/eventually.h"

namespace memtide::test {
namespace {

process::Child spawn(std::vector<std::string> argv, const std::string& output_file) {
    process::Command command;
    command.argv = std::move(argv);
    command.standard_output = process::Stream::file(output_file, false);
    command.standard_error = process::Stream::file(output_file + ".log");
    auto child = process::Child::spawn(command);
    if (!child) throw std::runtime_error(child.error().message);
    return *std::move(child);
}

}  // namespace

std::string read_file(const std::string& path) {
    // Block by block: a state file of the manager has tens of MiB.
    std::ifstream file(path);
    std::ostringstream content;
    content << file.rdbuf();
    return std::move(content).str();
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::trunc);
    file << text;
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

Daemon::Daemon(std::vector<std::string> argv, std::string output_file, const std::string& ready)
    : output_file_(std::move(output_file)), child_(spawn(std::move(argv), output_file_)) {
    const bool started = eventually([&] {
        const std::string printed = read_file(output_file_);
        const auto at = printed.find(ready);
        return (at != std::string::npos && printed.find('\n', at) != std::string::npos) ||
               child_.try_wait().has_value();
    });
    if (!started || !child_.running())
        throw std::runtime_error(fmt::format("{} did not start: {}", output_file_, output()));
}

void Daemon::kill() {
    (void)child_.kill();
    (void)child_.wait_for(std::chrono::seconds(60));
}

process::Exit Daemon::terminate() {
    (void)child_.terminate();
    const auto exit = child_.wait_for(std::chrono::seconds(60));
    if (!exit) throw std::runtime_error(exit.error().message);
    return *exit;
}

std::string Daemon::output() const { return read_file(output_file_) + read_file(output_file_ + ".log"); }

std::string switch_address(const TempFolder& folder) { return "unix://" + folder.file("switch0.sock"); }
std::string manager_url(const TempFolder& folder) { return "unix:" + folder.file("manager.sock"); }

std::string topology_yaml(const TempFolder& folder, const SwitchOptions& options) {
    std::string ports;
    std::string vcss;
    for (int i = 0; i < options.hosts; ++i) {
        ports += fmt::format("      - {{id: {}, host: host{}}}\n", i, i);
        vcss += fmt::format("      - {{id: {}, upstream_port: {}, vppbs: 8}}\n", i, i);
    }
    std::string devices;
    for (int i = 0; i < options.devices; ++i) {
        ports += fmt::format("      - {{id: {}, device: mld{}}}\n", options.hosts + i, i);
        std::string lds;
        for (int ld = 0; ld < options.lds; ++ld) lds += ld == 0 ? "256MiB" : ", 256MiB";
        devices += fmt::format(
            "      - {{name: mld{}, kind: mld, serial: 0x4d540001000{:02x}000, size: {}MiB, lds: [{}]}}\n", i,
            i, 256 * options.lds, lds);
    }
    return fmt::format(
        "name: test\n"
        "switches:\n"
        "  - name: switch0\n"
        "    listen: [\"{}\"]\n"
        "    media: {}\n"
        "    bind_time: {}ms\n"
        "    unbind_time: {}ms\n"
        "    sanitize_time: {}ms\n"
        "    ports:\n{}"
        "    vcss:\n{}"
        "    devices:\n{}",
        switch_address(folder), folder.path(), options.bind_time.count(), options.unbind_time.count(),
        options.sanitize_time.count(), ports, vcss, devices);
}

std::string manager_yaml(const TempFolder& folder, const ManagerOptions& options) {
    std::string hosts;
    for (int i = 0; i < options.hosts; ++i)
        hosts += fmt::format("  - {{name: host{}, attach: [{{switch: switch0, vcs: {}}}]}}\n", i, i);
    return fmt::format(
        "listen: [\"127.0.0.1:0\", \"{}\"]\n"
        "state: {}\n"
        "switches:\n"
        "  - {{name: switch0, address: \"{}\"}}\n"
        "hosts:\n{}"
        "timing: {{{}}}\n"
        "limits: {{{}}}\n"
        "log_level: {}\n"
        "{}",
        manager_url(folder), folder.file("state.db"), switch_address(folder), hosts, options.timing,
        options.limits, options.log_level, options.more);
}

Daemon start_switch(const TempFolder& folder, const SwitchOptions& options) {
    const std::string file = folder.file("topology.yaml");
    write_file(file, topology_yaml(folder, options));
    return {{MEMTIDE_CXL_EMUL, "switch", file}, folder.file("switch.out"), "listening on"};
}

Daemon start_manager(const TempFolder& folder, const ManagerOptions& options) {
    const std::string file = folder.file("manager.yaml");
    write_file(file, manager_yaml(folder, options));
    return {{MEMTIDE_FABRIC_MANAGER, "--config", file},
            folder.file("manager.out"),
            "listening on " + manager_url(folder)};
}

std::string fleet_control(const TempFolder& folder) { return "unix:" + folder.file("control.sock"); }

Daemon start_fleet(const TempFolder& folder, const FleetOptions& options) {
    std::vector<std::string> argv{
        MEMTIDE_CXL_EMUL,
        "hosts",
        "--count=" + std::to_string(options.hosts),
        "--switches=" + std::to_string(options.switches),
        "--devices=" + std::to_string(options.devices),
        "--listen=unix://" + folder.path(),
        "--manager=" + (options.manager.empty() ? manager_url(folder) : options.manager),
        "--state=" + folder.file("state.db"),
        "--write-config=" + folder.file("fleet.yaml"),
        "--control=" + fleet_control(folder)};
    argv.insert(argv.end(), options.options.begin(), options.options.end());
    return {std::move(argv), folder.file("fleet.out"), "start the manager"};
}

Daemon start_fleet_manager(const TempFolder& folder, const std::string& more) {
    const std::string file = folder.file("manager.yaml");
    write_file(file, read_file(folder.file("fleet.yaml")) + more);
    return {{MEMTIDE_FABRIC_MANAGER, "--config", file}, folder.file("manager.out"), "listening on "};
}

std::uint16_t tcp_port(const Daemon& manager) {
    const std::string printed = manager.output();
    const std::string before = "listening on 127.0.0.1:";
    const auto at = printed.find(before);
    if (at == std::string::npos) throw std::runtime_error("the manager named no port");
    return static_cast<std::uint16_t>(std::stoul(printed.substr(at + before.size())));
}

}  // namespace memtide::test
