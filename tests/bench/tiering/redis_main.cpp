// memtide-tiering-redis: a load like YCSB's core workloads on a Redis server that it starts, for benchmarks
// of memory tiering. Prints the same JSON lines as memtide-tiering-load.
//
// Records have a value of 1,000 bytes, as YCSB's have; keys are of Zipf popularity, scrambled. Workload A
// reads and updates (whole values) half and half, B updates 5 %, C only reads. Sixteen commands are in
// flight. Every value that is read is checked: it has to be that of its key, and of the last update.
//
// What is measured, and what is not: where values are can be asked for (redis_values.h), so that `hit` is the
// share of accesses to *values* that fall on the fast node, weighted by the known popularity of keys and by
// the bytes that a page has of a value. Accesses to Redis's hash table, its keys and buffers, and to this
// client's own tables (12 bytes a record) are not in it. While values are looked for no command of the load
// runs: measuring windows are apart from those in which operations and stalls are counted. Every few seconds
// a window looks for values of keys that are drawn by popularity (an estimate, with a standard error of 0.7 %
// of accesses or less); the first one looks at all keys. `oracle` is exact for the pages that values
// have as the load begins. moved_pages and fast_bytes are estimated from 4,096 pages with values.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/process/child.h"
#include "tests/bench/tiering/alias_table.h"
#include "tests/bench/tiering/placement.h"
#include "tests/bench/tiering/random.h"
#include "tests/bench/tiering/redis_values.h"
#include "tests/bench/tiering/report.h"
#include "tests/bench/tiering/resp.h"

namespace memtide::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kValueBytes = 1000;
// Of Redis's memory: the value in its size class (1,024), object, key, entry and slot of the hash table.
constexpr std::size_t kRecordBytes = 1024 + 16 + 24 + 32 + 16;
constexpr unsigned kInFlight = 16;
constexpr std::size_t kFilledAtOnce = 128;
constexpr std::size_t kDraws = 4096;  // of a measuring window
constexpr std::size_t kWatchedPages = 4096;
constexpr int kFastNode = 0;
constexpr int kSlowNode = 1;

std::atomic<bool> interrupted{false};

struct Options {
    std::string workload = "B";
    std::string size = "640MiB";
    std::string server = "/usr/bin/redis-server";
    double exponent = 0.99;
    double seconds = 120;
    double interval = 5;
    pid_t watch = 0;
};

std::string key_name(std::size_t number) { return fmt::format("user{:010}", number); }

// The value of a record after so many updates. Letters are copied: an emulated processor takes its time to
// make up a thousand of them.
std::string value_of(std::size_t number, std::uint32_t version) {
    static const std::string kLetters = [] {
        std::string letters(kValueBytes + 26, 'a');
        for (std::size_t i = 0; i < letters.size(); ++i) letters[i] = static_cast<char>('a' + i % 26);
        return letters;
    }();
    std::string value = fmt::format("{:010}:{:010}:", number, version);
    value.append(kLetters, number % 26, kValueBytes - value.size());
    return value;
}

// Its own socket and log, in /run.
class Server {
  public:
    static Result<Server> start(const std::string& program) {
        const std::string socket = fmt::format("/run/memtide-redis-{}.sock", getpid());
        process::Command command;
        command.argv = {program, "--port",           "0",  "--unixsocket",
                        socket,  "--save",           "",   "--appendonly",
                        "no",    "--daemonize",      "no", "--dir",
                        "/run",  "--rdbcompression", "no", "--enable-debug-command",
                        "yes"};
        command.standard_output = process::Stream::file("/run/memtide-redis.log", false);
        auto child = process::Child::spawn(command);
        if (!child) return std::unexpected(child.error());
        return Server(std::move(*child), socket);
    }
    [[nodiscard]] pid_t pid() const { return child_.pid(); }
    [[nodiscard]] const std::string& socket() const { return socket_; }

  private:
    Server(process::Child child, std::string socket) : child_(std::move(child)), socket_(std::move(socket)) {}
    process::Child child_;
    std::string socket_;
};

class RedisLoad {
  public:
    RedisLoad(const Options& options, std::size_t records, pid_t server, RespClient& client,
              RedisValues values)
        : options_(options),
          server_(server),
          client_(client),
          values_(std::move(values)),
          shares_(scrambled_zipf(records, records, options.exponent, 0)),
          picks_(shares_),
          versions_(records),
          update_share_(options.workload == "A"   ? 0.5
                        : options.workload == "B" ? 0.05
                                                  : 0),
          reporter_(options.watch) {}

    Result<> run() {
        const auto copy_speed = measure_copy(kFastNode, kSlowNode);
        if (auto filled = fill(); !filled) return filled;
        std::map<std::uint64_t, double> pages;
        if (auto found = measure_all(pages); !found) return found;
        watch_some(pages);
        const auto free = free_pages(kFastNode);
        if (!free) return std::unexpected(free.error());
        const std::size_t capacity = *free + on_fast_;
        std::vector<double> shares;
        shares.reserve(pages.size());
        for (const auto& [page, share] : pages) shares.push_back(share);
        oracle_ = best_of(std::move(shares), capacity);
        print_start({.pid = server_,
                     .pages = pages.size(),
                     .hot_pages = 0,
                     .fast_capacity_pages = capacity,
                     .phases = 1,
                     .copy_bytes_per_second = copy_speed.value_or(0),
                     .fast_pages = on_fast_,
                     .slow_pages = pages.size() - on_fast_,
                     .look = "debug object"});
        return access();
    }

    [[nodiscard]] const std::string& wrong() const { return wrong_; }

  private:
    Result<> fill() {
        for (std::size_t first = 0; first < versions_.size(); first += kFilledAtOnce) {
            const std::size_t count = std::min(kFilledAtOnce, versions_.size() - first);
            for (std::size_t i = first; i < first + count; ++i)
                client_.queue({"SET", key_name(i), value_of(i, 0)});
            if (auto sent = client_.flush(); !sent) return sent;
            for (std::size_t i = 0; i < count; ++i)
                if (auto answer = client_.read(); !answer) return std::unexpected(answer.error());
        }
        return {};
    }

    // Looks for all values: `hit_`, exactly, and how often which page is accessed.
    Result<> measure_all(std::map<std::uint64_t, double>& pages) {
        std::vector<std::string> keys;
        for (std::size_t first = 0; first < versions_.size(); first += kDraws) {
            keys.clear();
            const std::size_t count = std::min(kDraws, versions_.size() - first);
            for (std::size_t i = 0; i < count; ++i) keys.push_back(key_name(first + i));
            const auto spans = values_.find(keys);
            if (!spans) return std::unexpected(spans.error());
            for (std::size_t i = 0; i < count; ++i) add_pages((*spans)[i], shares_[first + i], pages);
        }
        return hit_of(pages);
    }

    Result<> measure_some() {
        std::vector<std::string> keys;
        keys.reserve(kDraws);
        for (std::size_t i = 0; i < kDraws; ++i) keys.push_back(key_name(picks_.pick(random_.next())));
        const auto spans = values_.find(keys);
        if (!spans) return std::unexpected(spans.error());
        std::map<std::uint64_t, double> pages;
        for (const ValueSpan& span : *spans) add_pages(span, 1.0 / kDraws, pages);
        return hit_of(pages);
    }

    Result<> hit_of(const std::map<std::uint64_t, double>& shares) {
        std::vector<std::uint64_t> pages;
        pages.reserve(shares.size());
        for (const auto& [page, share] : shares) pages.push_back(page);
        const auto nodes = nodes_of(server_, pages);
        if (!nodes) return std::unexpected(nodes.error());
        hit_ = 0;
        on_fast_ = 0;
        std::size_t i = 0;
        for (const auto& [page, share] : shares)
            if ((*nodes)[i++] == kFastNode) {
                hit_ += share;
                ++on_fast_;
            }
        return {};
    }

    // Every so many-th page that has values.
    void watch_some(const std::map<std::uint64_t, double>& pages) {
        all_pages_ = pages.size();
        const std::size_t every = std::max<std::size_t>(1, pages.size() / kWatchedPages);
        std::size_t number = 0;
        for (const auto& [page, share] : pages)
            if (number++ % every == 0) watched_.push_back(page);
    }

    Result<> look_at_watched() {
        const auto nodes = nodes_of(server_, watched_);
        if (!nodes) return std::unexpected(nodes.error());
        watched_on_fast_ = static_cast<std::size_t>(std::ranges::count(*nodes, kFastNode));
        moves_.look(*nodes, seconds());
        return {};
    }

    Result<> access() {
        began_ = Clock::now();
        if (auto looked = look_at_watched(); !looked) return looked;
        print_line();
        double next = options_.interval;
        while (!interrupted && seconds() < options_.seconds && wrong_.empty()) {
            if (auto done = one_batch(); !done) return done;
            if (seconds() < next) continue;
            const auto window = Clock::now();
            if (auto measured = measure_some(); !measured) return measured;
            if (auto looked = look_at_watched(); !looked) return looked;
            window_seconds_ = std::chrono::duration<double>(Clock::now() - window).count();
            looked_seconds_ += window_seconds_;
            print_line();
            next = std::max(next + options_.interval, seconds() + options_.interval / 2);
        }
        const double took = seconds();
        StallCounts stalls;
        stalls_.add_to(stalls);
        Reporter::print({.seconds = took,
                         .moved_pages = whole(moves_.moved()),
                         .undone_pages = whole(moves_.undone()),
                         .look_cpu_share = looked_seconds_ / took,
                         .wrong = wrong_},
                        accesses_, stalls);
        return {};
    }

    Result<> one_batch() {
        const auto before = Clock::now();
        for (auto& command : batch_) {
            command.number = picks_.pick(random_.next());
            command.update = static_cast<double>(random_.next() >> 11) * 0x1p-53 < update_share_;
            // Commands are carried out in order: a read behind an update sees it.
            if (command.update) ++versions_[command.number];
            command.version = versions_[command.number];
            if (command.update)
                client_.queue({"SET", key_name(command.number), value_of(command.number, command.version)});
            else
                client_.queue({"GET", key_name(command.number)});
        }
        if (auto sent = client_.flush(); !sent) return sent;
        for (const auto& command : batch_) {
            const auto answer = client_.read();
            if (!answer) return std::unexpected(answer.error());
            if (!command.update && answer->text != value_of(command.number, command.version))
                wrong_ = fmt::format("the value of {} is not what it was", key_name(command.number));
        }
        stalls_.add(static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - before).count()));
        accesses_ += kInFlight;
        return {};
    }

    void print_line() {
        StallCounts stalls;
        stalls_.add_to(stalls);
        const std::uint64_t fast = whole(watched_on_fast_);
        reporter_.print({.seconds = seconds(),
                         .phase = 0,
                         .hit = hit_,
                         .oracle = oracle_,
                         .fast_pages = fast,
                         .slow_pages = all_pages_ - std::min<std::size_t>(all_pages_, fast),
                         .moved_pages = whole(moves_.moved()),
                         .undone_pages = whole(moves_.undone()),
                         .look_seconds = window_seconds_},
                        accesses_, stalls, stalls_.take_longest());
    }

    // Of pages with values, from those that are watched.
    [[nodiscard]] std::uint64_t whole(std::uint64_t of_watched) const {
        return watched_.empty() ? 0 : of_watched * all_pages_ / watched_.size();
    }
    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>(Clock::now() - began_).count();
    }

    struct Access {
        std::size_t number = 0;
        std::uint32_t version = 0;
        bool update = false;
    };

    Options options_;
    pid_t server_;
    RespClient& client_;
    RedisValues values_;
    std::vector<double> shares_;
    AliasTable picks_;
    std::vector<std::uint32_t> versions_;
    double update_share_;
    Reporter reporter_;
    Random random_{1};
    std::array<Access, kInFlight> batch_;
    Clock::time_point began_;
    double oracle_ = 0;
    double hit_ = 0;
    std::size_t on_fast_ = 0;
    std::size_t all_pages_ = 0;
    std::vector<std::uint64_t> watched_;
    std::size_t watched_on_fast_ = 0;
    MoveCounter moves_;
    StallRecorder stalls_;
    std::uint64_t accesses_ = 0;
    double window_seconds_ = 0;
    double looked_seconds_ = 0;
    std::string wrong_;
};

int fail_with(const std::string& what) {
    std::fprintf(stderr, "memtide-tiering-redis: %s\n", what.c_str());
    return 1;
}

int run(int argc, char** argv) {
    CLI::App app{"A load like YCSB's on a Redis server of its own"};
    Options options;
    app.add_option("--workload", options.workload, "A (half updates), B (5 % updates, default) or C (reads)")
        ->check(CLI::IsMember({"A", "B", "C"}));
    app.add_option("--size", options.size, "Memory of the server, about; 640MiB by default");
    app.add_option("--server", options.server, "/usr/bin/redis-server by default")->check(CLI::ExistingFile);
    app.add_option("--exponent", options.exponent, "Of the popularity of keys, 0.99 by default")
        ->check(CLI::Range(0.0, 5.0));
    app.add_option("--seconds", options.seconds, "120 by default")->check(CLI::Range(1.0, 86400.0));
    app.add_option("--interval", options.interval, "Seconds between measuring windows, 5 by default")
        ->check(CLI::Range(0.5, 3600.0));
    app.add_option("--watch", options.watch, "Also print processor time and memory of this process");
    CLI11_PARSE(app, argc, argv);
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = true; };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);

    const auto size = parse_bytes(options.size);
    if (!size) return fail_with(size.error().message);
    const std::size_t records = std::max<std::size_t>(1000, size->value / kRecordBytes);
    const auto server = Server::start(options.server);
    if (!server) return fail_with(server.error().message);
    auto client = RespClient::connect(server->socket(), std::chrono::seconds(60));
    if (!client) return fail_with(client.error().message);
    auto values = RedisValues::open(*client, server->pid(), kValueBytes);
    if (!values) return fail_with(values.error().message);
    RedisLoad load(options, records, server->pid(), *client, std::move(*values));
    if (auto done = load.run(); !done) return fail_with(done.error().message);
    return load.wrong().empty() ? 0 : fail_with(load.wrong());
}

}  // namespace
}  // namespace memtide::bench

int main(int argc, char** argv) { return memtide::bench::run(argc, argv); }
