#include "tests/crash/life.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log/log.h"
#include "fabric-manager/store/files.h"

namespace memtide::fm::crash {

namespace {

std::uint64_t size_of(const std::string& path) {
    std::error_code absent;
    const std::uintmax_t size = std::filesystem::file_size(path, absent);
    return absent ? 0 : size;
}

void pass(std::string_view point, int kill_at, Witness& witness) {
    if (++witness.points != kill_at) return;
    std::memset(witness.at, 0, sizeof witness.at);
    std::memcpy(witness.at, point.data(), std::min(point.size(), sizeof witness.at - 1));
    kill(getpid(), SIGKILL);
    pause();
}

void configure(Life& life, int kill_at, Witness& witness) {
    Rig& rig = life.rig;
    rig.store.path = life.folder + "/state.db";
    rig.store.commit_after = std::chrono::milliseconds(life.seed % 2 == 0 ? 0 : 100);
    rig.fabric->background_polls = 2;
    rig.config.sync_point = [kill_at, &witness](std::string_view point) { pass(point, kill_at, witness); };
    rig.store.fault = [kill_at, &witness, path = rig.store.path](std::string_view point) {
        // Noted before the point is passed: at "synced" the group is on the disk.
        if (witness.wal_created == 0) witness.wal_created = size_of(path + "-wal");
        if (point == "synced") witness.log_synced = size_of(StatePaths(path).logs().back());
        pass(fmt::format("store:{}", point), kill_at, witness);
        return 0;
    };
}

std::string live_here(const Scenario& scenario, const std::string& folder, std::uint64_t seed, int kill_at,
                      Witness& witness) {
    std::string text;
    try {
        Life life;
        life.folder = folder;
        life.seed = seed;
        configure(life, kill_at, witness);
        scenario.prepare(life);
        life.rig.fabric->keep_in(folder + "/switch.json");
        life.rig.start_ready();
        scenario.live(life);
        for (const std::string& one : violations(life, scenario)) text += one + "; ";
    } catch (const std::exception& e) {
        text += e.what();
    }
    return text;
}

}  // namespace

LifeResult live(const Scenario& scenario, const std::string& folder, std::uint64_t seed, int kill_at,
                Witness& witness) {
    witness.points = 0;
    witness.wal_created = 0;
    witness.log_synced = 0;
    const std::string report = folder + "/report";
    std::filesystem::remove(report);
    const pid_t child = fork();
    if (child == 0) {
        log::set_level(std::getenv("MEMTIDE_CRASH_STORY") != nullptr ? log::Level::kDebug
                                                                     : log::Level::kError);
        const std::string wrong = live_here(scenario, folder, seed, kill_at, witness);
        std::ofstream(report) << wrong;
        _exit(wrong.empty() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return {Death::kKilled, {}};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    const Result<std::string> wrong = read_file(report);
    return {Death::kNone, wrong && !wrong->empty() ? *wrong : fmt::format("wait status {}", status)};
}

}  // namespace memtide::fm::crash
