#include "tests/crash/campaign.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <random>
#include <stdexcept>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/life.h"
#include "tests/crash/torn_writes.h"

namespace memtide::fm::crash {

namespace {

constexpr int kWorkers = 4;  // lives mostly wait for timers
constexpr int kMostKills = 3;

class Folder {
  public:
    Folder() {
        // Memory is disk enough: what a power failure does is up to tear().
        const std::filesystem::path shm = "/dev/shm";
        const std::filesystem::path base =
            access(shm.c_str(), W_OK) == 0 ? shm : std::filesystem::temp_directory_path();
        std::string name = (base / "memtide-crash-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder " + name);
        path_ = name;
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

template <typename T>
T* shared() {
    void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    return new (memory) T;
}

// One story: lives that are killed, and one that is not.
struct Story {
    const Scenario* scenario;
    std::uint64_t seed;
    int first_kill;
};

void tell(const Story& story, Witness& witness, Tally& tally) {
    const Folder folder;
    std::mt19937_64 random(story.seed * 1'000'003 + static_cast<std::uint64_t>(story.first_kill));
    std::string history;
    int kill_at = story.first_kill;
    for (int life = 0;; ++life) {
        const LifeResult result =
            live(*story.scenario, folder.path(), story.seed, life < kMostKills ? kill_at : 0, witness);
        if (result.death == Death::kNone) {
            ++tally.scenarios;
            if (result.wrong.empty()) return;
            ++tally.violations;
            std::cout << fmt::format("{}:{}:{}{}: {}\n", story.scenario->name, story.seed, story.first_kill,
                                     history, result.wrong)
                      << std::flush;
            return;
        }
        ++tally.kill_points;
        if (life > 0) ++tally.double_kills;
        history += fmt::format(", killed at point {}, {}", kill_at, witness.at);
        if (random() % 2 == 0 && tear(folder.path() + "/state.db", witness, random)) {
            ++tally.torn;
            history += ", torn";
        }
        // Every third story goes on with a kill somewhere in the recovery.
        kill_at = random() % 3 == 0 ? 1 + static_cast<int>(random() % 40) : 0;
    }
}

int points_of(const Scenario& scenario, std::uint64_t seed, Witness& witness, Tally& tally) {
    const Folder folder;
    const LifeResult result = live(scenario, folder.path(), seed, 0, witness);
    if (!result.wrong.empty()) {
        ++tally.violations;
        std::cout << fmt::format("{} (seed {}, nobody killed): {}\n", scenario.name, seed, result.wrong)
                  << std::flush;
    }
    return witness.points;
}

std::vector<Story> all_stories(double share, Tally& tally) {
    constexpr int kPointsOfLongOnes = 24;
    Witness& witness = *shared<Witness>();
    std::vector<Story> stories;
    for (const Scenario& scenario : scenarios())
        for (int seed = 1; seed <= scenario.seeds; ++seed) {
            const int points = points_of(scenario, static_cast<std::uint64_t>(seed), witness, tally);
            const int step = scenario.every_point ? 1 : std::max(1, points / kPointsOfLongOnes);
            for (int point = 1; point <= points; point += step)
                stories.push_back({&scenario, static_cast<std::uint64_t>(seed), point});
        }
    std::mt19937_64 random(7);
    std::ranges::shuffle(stories, random);  // so that the workers' shares take equally long
    stories.resize(static_cast<std::size_t>(static_cast<double>(stories.size()) * share));
    return stories;
}

}  // namespace

void run_story(Tally& tally, const std::string& name, int times) {
    const std::size_t first = name.find(':');
    const std::size_t second = name.find(':', first + 1);
    if (second == std::string::npos) throw std::invalid_argument(name + " is not SCENARIO:SEED:POINT");
    const auto scenario = std::ranges::find(scenarios(), name.substr(0, first), &Scenario::name);
    if (scenario == scenarios().end()) throw std::invalid_argument("no scenario " + name.substr(0, first));
    Witness& witness = *shared<Witness>();
    const Story story{&*scenario, std::stoull(name.substr(first + 1)), std::stoi(name.substr(second + 1))};
    for (int i = 0; i < times; ++i) tell(story, witness, tally);
}

void run_campaign(Tally& tally, double share) {
    const std::vector<Story> stories = all_stories(share, tally);
    std::atomic<std::size_t>& next = *shared<std::atomic<std::size_t>>();
    std::vector<pid_t> workers;
    for (int i = 0; i < kWorkers; ++i) {
        const pid_t worker = fork();
        if (worker == 0) {
            Witness& witness = *shared<Witness>();
            for (std::size_t n = next++; n < stories.size(); n = next++) tell(stories[n], witness, tally);
            _exit(0);
        }
        workers.push_back(worker);
    }
    for (const pid_t worker : workers) {
        int status = 0;
        waitpid(worker, &status, 0);
        if (status != 0) {
            ++tally.violations;
            std::cout << "a process of the crash test ended with wait status " << status << std::endl;
        }
    }
}

}  // namespace memtide::fm::crash
