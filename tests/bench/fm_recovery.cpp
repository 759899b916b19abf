// fm-recovery: cold start with 100,000 compositions that are Online: from opening the state file (checked,
// with the checksum of every row) to ready, which takes having read every switch. 200 switches without a wire
// (the engine's own fake), each with 2 hosts and 32 MLDs of 16 LDs; all in one process. After ready all
// compositions must still be Online. `store_seconds` is the share of opening and loading the state file; the
// same for a damaged one, recovered from snapshot and log.
//
//   bench_fm_recovery [SWITCHES]      with 500 compositions each
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include <boost/asio/io_context.hpp>

#include "common/log/log.h"
#include "fabric-manager/engine/manager.h"
#include "tests/bench/figure.h"
#include "tests/bench/store_life.h"
#include "tests/fabric-manager/engine/fake_switch.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

constexpr int kVppbs = 250;  // a host
constexpr int kMlds = 32;
constexpr int kLds = 16;
constexpr int kRuns = 5;
constexpr std::uint64_t kEventsEach = 500;
constexpr std::uint64_t kUnit = 256U << 20U;

struct Fabric {
    Fabric(boost::asio::io_context& io, int count) {
        for (int n = 0; n < count; ++n) {
            auto one = std::make_shared<fm::FakeSwitch>(io.get_executor());
            one->add_hosts(kVppbs);
            for (int mld = 0; mld < kMlds; ++mld) {
                const auto port = static_cast<std::uint8_t>(2 + mld);
                one->add_mld(port, std::vector<std::uint64_t>(kLds, 1));
                // Serial numbers are one of a kind over all switches.
                const std::uint64_t own = static_cast<std::uint64_t>(n) << 40U;
                one->port(port).serial += own;
                for (fm::FakeLd& ld : one->port(port).lds) ld.serial += own;
            }
            const std::string number = std::to_string(n);
            const SwitchId id("switch" + number);
            for (std::uint8_t vcs : {std::uint8_t{0}, std::uint8_t{1}})
                config.hosts.push_back({HostId("host" + number + (vcs == 0 ? "a" : "b")), {{id, vcs}}});
            config.switches.push_back({id, "fake://switch" + number});
            clients[id] = one;
            switches.push_back(std::move(one));
        }
    }
    fm::ManagerConfig config;
    fm::FmApiClients clients;
    std::vector<std::shared_ptr<fm::FakeSwitch>> switches;
};

// Binds the n-th LD of the switch, and says what the journal has about it.
fm::Composition bound(Fabric& fabric, int n, int index, std::uint64_t sequence) {
    const std::uint8_t vcs = index < kVppbs ? 0 : 1;
    const auto vppb = static_cast<std::uint8_t>(index % kVppbs);
    const auto port = static_cast<std::uint8_t>(2 + index / kLds);
    const auto ld = static_cast<std::uint16_t>(index % kLds);
    fm::FakeSwitch& one = *fabric.switches[static_cast<std::size_t>(n)];
    fmapi::Vppb& at = one.vppb(vcs, vppb);
    at.binding = fmapi::VppbBinding::kBoundLd;
    at.port = port;
    at.ld = static_cast<std::uint8_t>(ld);
    fm::Composition c = composition(sequence, 5);
    c.revision = 1;
    c.phase_started = {};
    c.host = HostId("host" + std::to_string(n) + (vcs == 0 ? "a" : "b"));
    c.size = Bytes{kUnit};
    fm::Part& part = c.parts[0];
    part.memory = {DeviceId(fmt::format("mld-{:016x}", one.port(port).serial)), LdId{ld}};
    part.serial = SerialNumber{one.port(port).lds[ld].serial};
    part.port = port;
    part.size = c.size;
    part.where = {SwitchId("switch" + std::to_string(n)), vcs, vppb};
    return c;
}

Result<> apply(fm::Store& store, fm::Mutation mutation) {
    std::promise<Result<>> done;
    store.apply(std::move(mutation), [&](Result<> result) { done.set_value(std::move(result)); });
    return done.get_future().get();
}

Result<> make_state(Fabric& fabric, const std::string& path) {
    auto store = fm::open_sqlite_store({.path = path});
    if (!store) return std::unexpected(store.error());
    std::uint64_t sequence = 0;
    for (int n = 0; n < static_cast<int>(fabric.switches.size()); ++n) {
        fm::Mutation many;
        for (int i = 0; i < 2 * kVppbs; ++i)
            many.compositions.push_back({bound(fabric, n, i, ++sequence), false});
        for (std::uint64_t i = 0; i < kEventsEach; ++i) {
            fm::Event event;
            event.id = static_cast<std::uint64_t>(n) * (kEventsEach) + i + 1;
            event.type = "composition.state";
            event.host = HostId("host" + std::to_string(n) + "a");
            event.detail = "one of many events that are kept for those who come back";
            many.events.push_back(std::move(event));
        }
        if (Result<> ok = apply(**store, std::move(many)); !ok) return ok;
    }
    return {};
}

// Seconds from the start to ready.
Result<double> start(boost::asio::io_context& io, Fabric& fabric, const std::string& path) {
    const auto began = std::chrono::steady_clock::now();
    auto store = fm::open_sqlite_store({.path = path});
    if (!store) return std::unexpected(store.error());
    metrics::Registry metrics;
    auto manager =
        fm::Manager::open(io.get_executor(), fabric.config, *std::move(store), fabric.clients, metrics);
    if (!manager) return std::unexpected(manager.error());
    (*manager)->start();
    io.restart();
    while (!(*manager)->readiness().ready) io.run_one_for(std::chrono::milliseconds(100));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    // What it thinks of them after everything it has to do at once.
    io.run_for(std::chrono::milliseconds(200));
    fm::CompositionQuery online;
    online.state = fm::CompositionState::kOnline;
    online.limit = 1'000'000;
    const std::size_t found = (*manager)->list(online).items.size();
    manager->reset();
    io.restart();
    while (io.poll() != 0) io.restart();
    if (found != fabric.switches.size() * 2 * kVppbs)
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
    Fabric fabric(io, switches);
    if (Result<> ok = make_state(fabric, path); !ok) return ok;
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
