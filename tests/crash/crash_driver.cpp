// One life of the manager core, ended by SIGKILL at a chosen sync point: every journal write and every effect
// is one. Store and fake switch keep their state in files, as the disk and the hardware would. Run again
// without a point, it goes on where the files are.
//
//   crash_driver FOLDER SCENARIO KILL_AT      (KILL_AT: number of the sync point, 0 for none)
//
// Scenarios: plain (create, Online, release), carve (the LD has to be carved first), force (forced release
// while the agent holds on to the memory), early (released right after it was created). Exit code 0: the life
// is over and all is as it should be; 1: something is wrong, said on standard output; killed by SIGKILL at
// the point otherwise. The number of sync points passed is in FOLDER/points.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "common/log/log.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

struct Options {
    std::string folder;
    std::string scenario;
    int kill_at = 0;
};

int points = 0;

void configure(Rig& rig, const Options& options) {
    rig.store.path = options.folder + "/state.db";
    rig.fabric->background_polls = 2;
    if (options.scenario == "carve")
        rig.fabric->add_mld(2, {1, 1, 0}, 1);
    else
        rig.fabric->add_mld(2, {1, 1});
    rig.fabric->keep_in(options.folder + "/switch.json");
    rig.agents[0]->refuses_to_let_go = options.scenario == "force";
    rig.config.sync_point = [&options](std::string_view point) {
        if (++points != options.kill_at) return;
        std::ofstream(options.folder + "/killed-at") << point;
        kill(getpid(), SIGKILL);
        pause();
    };
}

// The client repeats its request with its key until it was answered, as clients do.
Composition compose(Rig& rig, const Options& options) {
    const std::uint64_t units = options.scenario == "carve" ? 3 : 1;
    for (;;) {
        const Outcome<Created> created = rig.create("host0", units, IdempotencyKey{"the-request", "body"});
        if (created) return created->composition;
        if (created.error().code != problem::kHostNotReachable)
            throw std::runtime_error(created.error().detail);
    }
}

void live(Rig& rig, const Options& options) {
    const CompositionId id = compose(rig, options).id;
    const auto ended = [&] { return is_end(rig.get(id).state); };
    if (options.scenario != "early" && !rig.get(id).release_requested)
        if (!rig.run_until([&] { return rig.get(id).state == CompositionState::kOnline || ended(); }))
            throw std::runtime_error("never online: " + waiting_for(rig.get(id)));
    if (!ended()) (void)rig.release(id, options.scenario == "force");
    if (!rig.run_until(ended)) throw std::runtime_error("never released: " + waiting_for(rig.get(id)));
}

std::vector<std::string> check(Rig& rig, const Options& options) {
    std::vector<std::string> wrong = rig.fabric->violations;
    const std::vector<Composition> all = rig.manager->list({}).items;
    if (all.size() != 1) wrong.push_back(fmt::format("{} compositions instead of one", all.size()));
    for (const Composition& c : all)
        if (c.state != CompositionState::kReleased)
            wrong.push_back(fmt::format("{} is {}: {}", c.id.value, to_string(c.state),
                                        c.reason ? c.reason->detail : ""));
    for (const FakeVcs& vcs : rig.fabric->vcss)
        for (const fmapi::Vppb& one : vcs.vppbs)
            if (one.binding != fmapi::VppbBinding::kUnbound) wrong.emplace_back("a vPPB is still bound");
    const bool bound = options.scenario != "early" || rig.fabric->calls["bind"] != 0;
    if (rig.fabric->calls["bind"] > 1)
        wrong.push_back(fmt::format("bound {} times", rig.fabric->calls["bind"]));
    if (bound && rig.fabric->calls["unbind"] != rig.fabric->calls["bind"])
        wrong.emplace_back("unbinds are not binds");
    for (const Composition& c : all)
        for (const FakeLd& ld : rig.fabric->port(2).lds)
            if (bound && ld.serial == c.parts.at(0).serial.value && ld.dirty)
                wrong.emplace_back("released without an erase");
    const Pool pool = rig.manager->pool();
    if (pool.free != pool.capacity) wrong.emplace_back("the pool did not get everything back");
    return wrong;
}

int run(const Options& options) {
    Rig rig;
    configure(rig, options);
    rig.start_ready();
    live(rig, options);
    const std::vector<std::string> wrong = check(rig, options);
    for (const std::string& line : wrong) std::cout << line << std::endl;
    std::ofstream(options.folder + "/points") << points;
    return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace memtide::fm

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: crash_driver FOLDER SCENARIO KILL_AT" << std::endl;
        return 2;
    }
    memtide::log::set_level(memtide::log::Level::kError);
    try {
        return memtide::fm::run({argv[1], argv[2], std::atoi(argv[3])});
    } catch (const std::exception& e) {
        std::cout << e.what() << std::endl;
        return 1;
    }
}
