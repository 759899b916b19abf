// memtide-tiering-load: a workload whose hit ratio is known exactly, for benchmarks and tests of memory
// tiering. It allocates anonymous memory, accesses its pages by a known distribution, and each second prints
// one JSON line. It asks the kernel for nothing but memory: whoever moves its pages does so from outside.
//
//   memtide-tiering-load --size 640MiB --hot 64MiB --shift-every 60 --seconds 120
//   memtide-tiering-load --pattern zipf --exponent 0.99 --thp on
//   memtide-tiering-load --companion 10          does nothing but wake up every 10 ms on each processor
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "tests/bench/tiering/btree.h"
#include "tests/bench/tiering/distribution.h"
#include "tests/bench/tiering/placement.h"
#include "tests/bench/tiering/report.h"
#include "tests/bench/tiering/workers.h"

namespace memtide::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Looking where pages are takes at most this share of one processor: lines are farther apart else.
constexpr double kMostOfTheTime = 0.05;

std::atomic<bool> interrupted{false};

struct Options {
    std::string size = "512MiB";
    std::string hot = "64MiB";
    std::vector<Pattern> patterns{Pattern::kGups};  // phases take turns with them
    Shape shape;
    std::string name;
    bool idle = false;
    int print_free = -1;
    bool thp = false;
    bool start_slow = false;
    bool reads = false;
    unsigned threads = 1;
    double seconds = 60;
    double interval = 1;
    std::vector<double> shifts;
    double shift_every = 0;
    int fast_node = 0;
    int slow_node = 1;
    std::string fast_capacity;
    double settle = 0;
    pid_t watch = 0;
    unsigned companion_ms = 0;
};

int fail_with(const std::string& what) {
    std::fprintf(stderr, "memtide-tiering-load: %s\n", what.c_str());
    return 1;
}

double seconds_since(Clock::time_point began) {
    return std::chrono::duration<double>(Clock::now() - began).count();
}

double thread_cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// A process on each processor that wakes up so often: the processor then switches address spaces, which makes
// an emulated one forget its TLB.
int be_company(unsigned every_ms) {
    const auto processors = sysconf(_SC_NPROCESSORS_ONLN);
    std::vector<pid_t> children;
    for (long i = 0; i < processors; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            cpu_set_t only;
            CPU_ZERO(&only);
            CPU_SET(static_cast<std::size_t>(i), &only);
            sched_setaffinity(0, sizeof only, &only);
            const pid_t parent = getppid();
            while (getppid() == parent) usleep(every_ms * 1000);
            _exit(0);
        }
        if (child > 0) children.push_back(child);
    }
    while (!interrupted) pause();
    for (const pid_t child : children) kill(child, SIGTERM);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    return 0;
}

class Load {
  public:
    Load(const Options& options, Mapping mapping)
        : options_(options),
          mapping_(std::move(mapping)),
          workers_(mapping_, options.idle ? 0 : options.threads, options.reads),
          reporter_(options.watch) {}

    int run() {
        plan_shifts();
        const auto copy_speed = measure_copy(options_.fast_node, options_.slow_node);
        if (options_.patterns.front() == Pattern::kBtree) {
            build_tree();
        } else {
            for (unsigned phase = 0; phase <= options_.shifts.size(); ++phase)
                phases_.emplace_back(shape_of(phase), phase);
            populate();
        }
        if (auto clean = check_no_policy(mapping_); !clean) return fail_with(clean.error().message);
        if (auto known = find_fast_capacity(); !known) return fail_with(known.error().message);
        for (const Distribution& phase : phases_) oracles_.push_back(phase.best_hit(fast_pages_));
        print_start_line(copy_speed.value_or(0));
        if (options_.settle > 0)
            wait_until(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(options_.settle)));
        return access();
    }

  private:
    void plan_shifts() {
        if (options_.shift_every > 0)
            for (double at = options_.shift_every; at < options_.seconds; at += options_.shift_every)
                options_.shifts.push_back(at);
        std::ranges::sort(options_.shifts);
    }

    [[nodiscard]] Shape shape_of(unsigned phase) const {
        Shape shape = options_.shape;
        shape.pattern = options_.patterns[phase % options_.patterns.size()];
        return shape;
    }

    // Grows until the memory is full.
    void build_tree() {
        tree_.emplace(mapping_);
        while (tree_->insert(key_of(tree_->records()))) continue;
        for (unsigned phase = 0; phase <= options_.shifts.size(); ++phase)
            phases_.emplace_back(shape_of(phase), phase, *tree_);
        workers_.use_tree(*tree_);
    }

    // First the sets that will be hot, so that they are on the slow node; the rest as the kernel likes, which
    // fills the fast node first.
    void populate() const {
        std::vector<bool> done(mapping_.pages());
        if (options_.start_slow) {
            const PreferNode prefer(options_.slow_node);
            for (const Distribution& phase : phases_) {
                const PageSpan hot = phase.hot();
                Workers::name_pages(mapping_, hot);
                std::fill_n(done.begin() + static_cast<std::ptrdiff_t>(hot.first), hot.count, true);
            }
        }
        for (std::size_t page = 0; page < done.size(); ++page)
            if (!done[page]) Workers::name_pages(mapping_, {page, 1});
    }

    Result<> find_fast_capacity() {
        if (auto found = look(); !found) return found;
        if (!options_.fast_capacity.empty()) {
            const auto given = parse_bytes(options_.fast_capacity);
            if (!given) return std::unexpected(given.error());
            fast_pages_ = given->value / kPageBytes;
            return {};
        }
        const auto free = free_pages(options_.fast_node);
        if (!free) return std::unexpected(free.error());
        fast_pages_ = *free + on_fast_;
        return {};
    }

    // Where the pages are now.
    Result<> look() {
        if (auto found = finder_.find(nodes_); !found) return found;
        on_fast_ = static_cast<std::size_t>(std::ranges::count(nodes_, options_.fast_node));
        on_slow_ = static_cast<std::size_t>(std::ranges::count(nodes_, options_.slow_node));
        return {};
    }

    void print_start_line(double copy_speed) const {
        print_start({.pid = getpid(),
                     .pages = mapping_.pages(),
                     .hot_pages = options_.shape.hot_pages,
                     .fast_capacity_pages = fast_pages_,
                     .phases = phases_.size(),
                     .copy_bytes_per_second = copy_speed,
                     .fast_pages = on_fast_,
                     .slow_pages = on_slow_,
                     .look = finder_.method()});
    }

    static void wait_until(Clock::time_point when) {
        while (!interrupted && Clock::now() < when)
            std::this_thread::sleep_until(std::min(when, Clock::now() + std::chrono::milliseconds(100)));
    }

    int access() {
        began_ = Clock::now();
        const double cpu_before = thread_cpu_seconds();
        workers_.start(phases_.front());
        print_line();  // as it starts
        double next = options_.interval;
        while (!interrupted && seconds_since(began_) < options_.seconds && !workers_.found_wrong_page()) {
            const double shift = phase_ < options_.shifts.size() ? options_.shifts[phase_] : options_.seconds;
            const double until = std::min({next, shift, options_.seconds});
            wait_until(began_ +
                       std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(until)));
            if (until == shift && phase_ < options_.shifts.size()) {
                workers_.use(phases_[++phase_]);
                print_line();  // what the new phase begins with
            }
            if (until != next) continue;
            const double cpu = thread_cpu_seconds();
            if (auto found = look(); !found) return fail_with(found.error().message);
            moves_.look(nodes_, seconds_since(began_));
            look_seconds_ = thread_cpu_seconds() - cpu;
            print_line();
            const double busy = thread_cpu_seconds() - cpu;
            next =
                std::max(next + options_.interval, seconds_since(began_) + busy * (1 / kMostOfTheTime - 1));
        }
        workers_.stop();
        return print_summary(thread_cpu_seconds() - cpu_before);
    }

    void print_line() {
        reporter_.print({.seconds = seconds_since(began_),
                         .phase = phase_,
                         .hit = phases_[phase_].hit(nodes_, options_.fast_node),
                         .oracle = oracles_[phase_],
                         .fast_pages = on_fast_,
                         .slow_pages = on_slow_,
                         .moved_pages = moves_.moved(),
                         .undone_pages = moves_.undone(),
                         .look_seconds = look_seconds_},
                        workers_.accesses(), workers_.stalls(), workers_.take_longest_stall());
    }

    int print_summary(double looker_cpu) {
        const double took = seconds_since(began_);
        const std::string wrong = workers_.check();
        Reporter::print({.seconds = took,
                         .moved_pages = moves_.moved(),
                         .undone_pages = moves_.undone(),
                         .look_cpu_share = looker_cpu / took,
                         .wrong = wrong},
                        workers_.accesses(), workers_.stalls());
        return wrong.empty() ? 0 : fail_with(wrong);
    }

    Options options_;
    Mapping mapping_;
    std::optional<Btree> tree_;
    Workers workers_;
    Reporter reporter_;
    std::deque<Distribution> phases_;
    std::vector<double> oracles_;
    std::size_t fast_pages_ = 0;
    NodeFinder finder_{mapping_};
    std::vector<int> nodes_;
    std::size_t on_fast_ = 0;
    std::size_t on_slow_ = 0;
    MoveCounter moves_;
    Clock::time_point began_;
    unsigned phase_ = 0;
    double look_seconds_ = 0;
};

void add_options(CLI::App& app, Options& options) {
    const std::map<std::string, Pattern> patterns{{"gups", Pattern::kGups},       {"zipf", Pattern::kZipf},
                                                  {"uniform", Pattern::kUniform}, {"scan", Pattern::kScan},
                                                  {"strewn", Pattern::kStrewn},   {"btree", Pattern::kBtree}};
    const std::map<std::string, bool> switches{{"on", true}, {"off", false}};
    app.add_option(
           "--pattern", options.patterns,
           "gups (default), zipf, uniform, scan, strewn or btree; several but btree take turns: gups,scan")
        ->delimiter(',')
        ->transform(CLI::CheckedTransformer(patterns));
    app.add_option("--size", options.size, "Memory, 512MiB by default");
    app.add_option("--hot", options.hot, "The hot set of gups, scan and strewn, 64MiB by default");
    app.add_option("--hot-share", options.shape.hot_share, "Share of accesses to it, 0.9 by default")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--exponent", options.shape.exponent, "Of zipf and btree, 0.99 by default")
        ->check(CLI::Range(0.0, 5.0));
    app.add_option("--keys-per-page", options.shape.keys_per_page, "Of zipf, hashed over pages; 4 by default")
        ->check(CLI::Range(1U, 64U));
    app.add_option("--thp", options.thp, "Huge pages by madvise: on or off (default)")
        ->transform(CLI::CheckedTransformer(switches));
    app.add_flag("--start-slow", options.start_slow,
                 "What is hot in any phase is first on the slow node (gups, scan)");
    app.add_flag("--reads", options.reads, "Only read");
    app.add_option("--threads", options.threads, "1 by default")->check(CLI::Range(1U, kMostThreads));
    app.add_option("--seconds", options.seconds, "60 by default")->check(CLI::Range(0.1, 86400.0));
    app.add_option("--interval", options.interval,
                   "Seconds between lines, 1 by default; more while looking at the pages takes over 5 % of a "
                   "processor")
        ->check(CLI::Range(0.05, 3600.0));
    app.add_option("--shift", options.shifts, "Seconds at which what is hot changes: --shift 30,75")
        ->delimiter(',');
    app.add_option("--shift-every", options.shift_every, "The same, every so many seconds")
        ->check(CLI::Range(0.1, 86400.0));
    app.add_option("--fast-node", options.fast_node, "NUMA node, 0 by default")->check(CLI::Range(0, 63));
    app.add_option("--slow-node", options.slow_node, "NUMA node, 1 by default")->check(CLI::Range(0, 63));
    app.add_option(
        "--fast-capacity", options.fast_capacity,
        "Memory of the fast node that an oracle could use; by default what is free there above the "
        "zones' high watermarks, and what the load has of it, once all memory is allocated");
    app.add_option("--settle", options.settle, "Seconds to wait between allocating and accessing")
        ->check(CLI::Range(0.0, 3600.0));
    app.add_option("--name", options.name, "Does nothing: a word by which an agent can tell loads");
    app.add_flag("--idle", options.idle, "Allocate and access nothing");
    app.add_option("--print-free", options.print_free,
                   "Be no load: print how many bytes of this node an oracle could use")
        ->check(CLI::Range(0, 63));
    app.add_option("--watch", options.watch, "Also print processor time and memory of this process");
    app.add_option(
           "--companion", options.companion_ms,
           "Be no load: wake up every so many ms on each processor. An emulated processor (QEMU's TCG) "
           "does not see cleared accessed bits before it switches address spaces")
        ->check(CLI::Range(1U, 10'000U));
    app.footer(
        "Lines: t (seconds since the start), phase, hit (share of accesses that go to the fast node, "
        "exactly: the "
        "distribution is known\nand every page is looked up in pagemap, or by move_pages), oracle (the same "
        "if the most popular "
        "pages were there), ops_per_second,\nstall_max_us and stall_p999_us (time that 64 accesses take, "
        "from the "
        "end of those before: the longest one, and what\n99.9 % do not exceed), fast_bytes and slow_bytes "
        "(of this "
        "process), moved_pages and undone_pages (that changed node between\ntwo looks; that came back within "
        "a "
        "minute), look_ms (what looking them up cost), counters of /proc/vmstat. The first\nline is "
        "{\"start\":...}, "
        "the last one {\"summary\":...}. Exit code 1 when a page lost data.");
}

int run(int argc, char** argv) {
    CLI::App app{"Accesses memory by a known distribution and prints what tiering makes of it"};
    Options options;
    add_options(app, options);
    CLI11_PARSE(app, argc, argv);
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = true; };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    if (options.companion_ms > 0) return be_company(options.companion_ms);
    if (options.print_free >= 0) {
        const auto free = free_pages(options.print_free);
        if (!free) return fail_with(free.error().message);
        fmt::print("{}\n", *free * kPageBytes);
        return 0;
    }
    if (options.patterns.size() > 1 && std::ranges::count(options.patterns, Pattern::kBtree) > 0)
        return fail_with("btree takes no turns with other patterns");

    const auto size = parse_bytes(options.size);
    const auto hot = parse_bytes(options.hot);
    if (!size || !hot) return fail_with((!size ? size : hot).error().message);
    options.shape.pages = size->value / kPageBytes;
    options.shape.hot_pages = hot->value / kPageBytes;
    if (options.shape.hot_pages == 0 || options.shape.hot_pages > options.shape.pages)
        return fail_with("--hot must be at least a page and at most --size");
    auto mapping = Mapping::make(options.shape.pages, options.thp);
    if (!mapping) return fail_with(mapping.error().message);
    return Load(options, std::move(*mapping)).run();
}

}  // namespace
}  // namespace memtide::bench

int main(int argc, char** argv) { return memtide::bench::run(argc, argv); }
