// fm-recovery: cold start with 100,000 compositions that are Online: from opening the state file (checked,
// with the checksum of every row) to ready, which takes having read every switch. 200 switches without a
// wire, all in one process. After ready all compositions must still be Online. `store_seconds` is the share
// of opening and loading the state file; the same for a damaged one, recovered from snapshot and log.
//
//   bench_fm_recovery [SWITCHES]      with 500 compositions each
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/manager.h"
#include "fabric-manager/store/store.h"
#include "tests/bench/bound_fabric.h"
#include "tests/bench/figure.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

constexpr int kRuns = 5;

// Over all pages.
std::size_t count_online(const fm::Manager& manager) {
    fm::CompositionQuery query;
    query.state = fm::CompositionState::kOnline;
    query.limit = 1000;
    std::size_t found = 0;
    for (;;) {
        const fm::CompositionPage page = manager.list(query);
        found += page.items.size();
        if (!page.next) return found;
        query.after = *page.next;
    }
}

// Seconds from the start to ready.
Result<double> start(boost::asio::io_context& io, const BoundFabric& fabric, const std::string& path) {
    const auto began = std::chrono::steady_clock::now();
    metrics::Registry metrics;
    auto manager = fabric.open(io, path, metrics);
    if (!manager) return std::unexpected(manager.error());
    (*manager)->start();
    io.restart();
    // As somebody who polls /readyz does; asking after every handler would be most of the work.
    while (!(*manager)->readiness().ready) io.run_for(std::chrono::milliseconds(10));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    // What it thinks of them after everything it has to do at once.
    io.run_for(std::chrono::milliseconds(200));
    const std::size_t found = count_online(**manager);
    manager->reset();
    io.restart();
    while (io.poll() != 0) io.restart();
    if (found != fabric.compositions())
        return fail(ErrorCode::kInternal, fmt::format("only {} compositions are Online", found));
    return took.count();
}

// Seconds until the contents of the state file are there.
Result<double> open_and_load(const std::string& path) {
    const auto began = std::chrono::steady_clock::now();
    auto store = fm::open_sqlite_store({.path = path});
    if (!store) return std::unexpected(store.error());
    const Result<fm::StoreContents> contents = (*store)->load();
    if (!contents) return std::unexpected(contents.error());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    return took.count();
}

void damage(const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(1 << 20);
    file << std::string(4096, '#');
}

// A store that runs makes the snapshot that is missing.
void wait_for_snapshot(const std::string& path) {
    const auto store = fm::open_sqlite_store({.path = path});
    while (store && !std::filesystem::exists(path + ".snapshot"))
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

Result<> repeat(const std::string& figure, const std::function<Result<double>()>& once) {
    std::vector<double> seconds;
    for (int i = 0; i < kRuns; ++i) {
        const Result<double> took = once();
        if (!took) return std::unexpected(took.error());
        seconds.push_back(*took);
    }
    print_figure("fm-recovery", figure, "s", seconds);
    return {};
}

Result<> measure(const std::string& path, int switches) {
    boost::asio::io_context io(1);
    BoundFabric fabric(io, switches);
    if (Result<> ok = fabric.bind(BoundFabric::kMostBound, path); !ok) return ok;
    if (Result<> ok = repeat("store_seconds", [&] { return open_and_load(path); }); !ok) return ok;
    const auto damaged = [&] {
        std::filesystem::remove(path + ".snapshot");
        wait_for_snapshot(path);
        damage(path);
        return open_and_load(path);
    };
    if (Result<> ok = repeat("store_seconds_damaged", damaged); !ok) return ok;
    wait_for_snapshot(path);
    return repeat("ready_seconds", [&] { return start(io, fabric, path); });
}

}  // namespace
}  // namespace memtide::bench

int main(int argc, char** argv) {
    memtide::log::set_level(memtide::log::Level::kError);
    const memtide::test::TempFolder folder;
    const int switches = argc > 1 ? std::atoi(argv[1]) : 200;
    const memtide::Result<> done = memtide::bench::measure(folder.file("state.db"), switches);
    if (done) return EXIT_SUCCESS;
    std::fprintf(stderr, "bench: %s\n", done.error().message.c_str());
    return EXIT_FAILURE;
}
