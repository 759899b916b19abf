#include "cxl-emul/rack/down.h"

#include <chrono>
#include <iostream>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "cxl-emul/rack/control_client.h"
#include "cxl-emul/rack/messages.h"
#include "cxl-emul/rack/report.h"
#include "cxl-emul/rack/run_folder.h"
#include "cxl-emul/switch/media.h"

namespace memtide::emul {

namespace {

// False when no rack runs there.
Result<bool> take_down(const std::string& run_folder) {
    const auto pid = RunFolder::running(run_folder);
    auto client = ControlClient::connect(run_folder);
    if (!client) {
        if (!pid && client.error().code == ErrorCode::kUnavailable) return false;
        return std::unexpected(client.error());
    }
    auto done = client->ask({{"op", "down"}});
    // The supervisor may be gone before its answer was read.
    if (!done && done.error().code != ErrorCode::kUnavailable) return std::unexpected(done.error());
    if (!wait_until_released(run_folder)) {
        return fail(ErrorCode::kTimeout,
                    fmt::format("the supervisor (pid {}) has not ended; see {}/supervisor.log",
                                pid.value_or(0), run_folder));
    }
    return true;
}

int wipe_media(const std::vector<std::string>& files) {
    int code = daemon::kExitOk;
    for (const auto& file : files) {
        const auto removed = MediaFile::remove(file);
        if (!removed)
            code = report(removed.error());
        else if (*removed)
            std::cout << "removed " << file << '\n';
    }
    return code;
}

void say_what_stays(const std::vector<std::string>& files) {
    std::vector<std::string> there;
    for (const auto& file : files) {
        if (::access(file.c_str(), F_OK) == 0) there.push_back(file);
    }
    if (there.empty()) return;
    std::cout << fmt::format("what the devices hold stays in {}; `rack down --wipe` removes it\n",
                             fmt::join(there, ", "));
}

}  // namespace

bool wait_until_released(const std::string& run_folder) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (RunFolder::running(run_folder)) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        ::poll(nullptr, 0, 20);
    }
    return true;
}

std::vector<std::string> media_files(const Topology& topology) {
    std::vector<std::string> files;
    for (const auto& in : topology.switches) {
        for (const auto& device : in.devices)
            if (!device.is_multi_headed()) files.push_back(topology.media_file(in, device));
    }
    for (const auto& device : topology.multi_headed) files.push_back(topology.media_file(device));
    for (const auto& host : topology.hosts) {
        for (const auto& device : host.devices) files.push_back(topology.media_file(host, device));
    }
    return files;
}

int run_down(const std::string& run_folder, const std::string& topology_path, bool wipe) {
    const auto topology = load_topology(topology_path);
    if (!topology && wipe) return report(topology.error());
    const auto stopped = take_down(run_folder);
    if (!stopped) return report(stopped.error());
    const auto name = topology ? "rack " + topology->name : "the rack in " + run_folder;
    std::cout << (*stopped ? fmt::format("{} is down\n", name)
                           : fmt::format("nothing to stop: no rack runs in {}\n", run_folder));
    // A rack can be stopped whatever has become of its topology file.
    if (!topology) return daemon::kExitOk;
    const auto files = media_files(*topology);
    if (wipe) return wipe_media(files);
    if (*stopped) say_what_stays(files);
    return daemon::kExitOk;
}

}  // namespace memtide::emul
