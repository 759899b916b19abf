// memtide_chaos: random compositions and releases, while hosts, switches, devices and the manager fail at
// random; then everything is healed and released, and all that must hold is checked. Exit code 1 when
// something did not; the seed is printed.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>

#include <CLI/CLI.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "tests/chaos/actions.h"
#include "tests/chaos/checks.h"
#include "tests/chaos/world.h"

namespace memtide::test {
namespace {

int run(const ChaosOptions& options) {
    std::printf("chaos: seed %llu, %lld s\n", static_cast<unsigned long long>(options.seed),
                static_cast<long long>(options.time.count()));
    std::fflush(stdout);
    World world(options);
    const auto taken = run_chaos(world);
    heal_and_settle(world);
    if (options.secured) {
        check_certificates(world);
        heal_and_settle(world);
    }
    check_end(world);
    for (const auto& [action, count] : taken) std::printf("chaos: %6d %s\n", count, action.c_str());
    std::map<std::string, int> ends;
    for (const auto& one : world.compositions()) {
        const auto& reason = one.at("reason");
        ++ends[text(one, "state") + (reason.is_object() ? ": " + text(reason, "code") : "")];
    }
    for (const auto& [end, count] : ends) std::printf("chaos: %6d ended %s\n", count, end.c_str());
    std::printf("chaos: %zu acknowledged, %d starts of the manager, hosts: %s\n", world.acknowledged().size(),
                world.manager_starts(), boost::json::serialize(world.fleet("/v1/status")).c_str());
    if (world.mistakes().empty()) {
        std::printf("chaos: all invariants hold, nothing leaked\n");
        return EXIT_SUCCESS;
    }
    std::fprintf(stderr, "%s\nchaos: %zu violations; seed %llu\n", world.logs().c_str(),
                 world.mistakes().size(), static_cast<unsigned long long>(options.seed));
    return EXIT_FAILURE;
}

}  // namespace
}  // namespace memtide::test

int main(int argc, char** argv) {
    memtide::test::ChaosOptions options;
    long seconds = 40;
    CLI::App app{"Everything that can go wrong, at once; then checks what must hold"};
    app.add_option("--seconds", seconds, "How long")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--seed", options.seed, "0: any")->capture_default_str();
    app.add_option("--hosts", options.hosts, "Emulated hosts")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--switches", options.switches, "Emulated switches")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
    app.add_option("--kind", options.kind, "Of the devices: mld or dcd")
        ->check(CLI::IsMember({"mld", "dcd"}))
        ->capture_default_str();
    app.add_flag(
        "--secured", options.secured,
        "With TLS, agents' certificates and tokens, which are renewed, revoked and mixed up meanwhile");
    CLI11_PARSE(app, argc, argv);
    if (options.seed == 0) options.seed = std::random_device()();
    options.time = std::chrono::seconds(seconds);
    try {
        return memtide::test::run(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "chaos: %s; seed %llu\n", error.what(),
                     static_cast<unsigned long long>(options.seed));
        return EXIT_FAILURE;
    }
}
