#include "tests/crash/scenarios.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

namespace memtide::fm::crash {

// --- What clients do ---

Composition Life::create(const std::string& key, const std::string& host, std::uint64_t units,
                         std::optional<std::chrono::seconds> ttl, PlacementPolicy policy) {
    for (;;) {
        CompositionRequest request;
        request.host = HostId(host);
        request.size = kCxlGranule * units;
        request.ttl = ttl;
        request.placement = policy;
        const Outcome<Created> created =
            rig.run(rig.manager->create(std::move(request), IdempotencyKey{key, "body of " + key}));
        if (created) return created->composition;
        // Right after a start the switch was not read yet.
        if (created.error().code != problem::kHostNotReachable)
            throw std::runtime_error(created.error().detail);
    }
}

void Life::until(const std::string& what, const std::function<bool()>& condition) {
    if (!rig.run_until(condition)) throw std::runtime_error("never: " + what);
}

void Life::reach_online(const CompositionId& id) {
    until("online: " + waiting_for(rig.get(id)), [&] {
        const CompositionState state = rig.get(id).state;
        return state == CompositionState::kOnline || is_end(state) || rig.get(id).release_requested;
    });
}

void Life::release(const CompositionId& id, bool force) {
    if (!is_end(rig.get(id).state)) (void)rig.release(id, force);
}

void Life::resize(const CompositionId& id, std::uint64_t units) {
    const Bytes size = kCxlGranule * units;
    const auto is_done = [&] {
        const Composition c = rig.get(id);
        return is_end(c.state) || c.release_requested ||
               (c.state == CompositionState::kOnline && held_size(c) == size);
    };
    if (is_done()) return;
    if (rig.get(id).state == CompositionState::kOnline) {
        CompositionChangeRequest request;
        request.size = size;
        const Outcome<Composition> changed = rig.run(rig.manager->change(id, std::move(request), {}));
        if (!changed) throw std::runtime_error(changed.error().detail);
    }
    until("resized", is_done);
}

void Life::resize_in_vain(const CompositionId& id, std::uint64_t from, std::uint64_t units) {
    if (is_end(rig.get(id).state) || rig.get(id).release_requested) return;
    const Bytes kept = kCxlGranule * from;
    if (!rig.has_event("composition.resize-failed") && !rig.get(id).exchange) {
        CompositionChangeRequest request;
        request.size = kCxlGranule * units;
        const Outcome<Composition> changed = rig.run(rig.manager->change(id, std::move(request), {}));
        if (!changed) throw std::runtime_error(changed.error().detail);
    }
    until("undone", [&] {
        const Composition c = rig.get(id);
        if (!is_lasting(c.parts.front()) || c.parts.front().state != CompositionState::kOnline)
            rig.fabric->violations.emplace_back("what was there went, and nothing came");
        return rig.has_event("composition.resize-failed") && c.state == CompositionState::kOnline &&
               c.size == kept && held_size(c) == kept;
    });
}

void Life::reach_end(const CompositionId& id) {
    until("an end", [&] { return is_end(rig.get(id).state); });
}

bool Life::marked(const std::string& name) const { return std::filesystem::exists(folder + "/" + name); }
void Life::mark(const std::string& name) const { std::ofstream(folder + "/" + name) << "yes"; }

namespace {

// --- Devices ---

void two_lds(Life& life) { life.rig.fabric->add_mld(2, {1, 1}); }
void four_lds(Life& life) { life.rig.fabric->add_mld(2, {1, 1, 1, 1}); }
void to_be_carved(Life& life) { life.rig.fabric->add_mld(2, {1, 1, 0}, 1); }

// On the first device the middle is taken first, so that two pieces are left; on the second one an LD is in
// the way.
void in_pieces(Life& life) {
    life.rig.fabric->add_mld(2, {1, 1, 1});
    life.rig.fabric->place_lds(2, {1, 0, 2});
    life.rig.fabric->add_mld(3, {1, 1, 1, 0});
    life.rig.fabric->place_lds(3, {0, 2, 1});
}

// --- Scenarios ---

void one_after_the_other(Life& life, bool force) {
    const CompositionId id = life.create("a", "host0", 1).id;
    life.reach_online(id);
    life.release(id, force);
    life.reach_end(id);
}
void plain(Life& life) { one_after_the_other(life, false); }

void hold_on(Life& life) {
    two_lds(life);
    life.rig.agents[0]->refuses_to_let_go = true;
}
void force(Life& life) { one_after_the_other(life, true); }

void carve(Life& life) {
    const CompositionId id = life.create("a", "host0", 3).id;
    life.reach_online(id);
    life.release(id);
    life.reach_end(id);
}

// Refused by the first device, carved of the second one at the second try.
void carve_refused(Life& life) {
    const CompositionId middle = life.create("a", "host0", 1).id;
    life.reach_online(middle);
    const CompositionId id = life.create("b", "host1", 2).id;
    life.reach_online(id);
    life.release(id);
    life.reach_end(id);
    life.release(middle);
    life.reach_end(middle);
}

// Refused, and nothing else fits.
void one_in_pieces(Life& life) {
    life.rig.fabric->add_mld(2, {1, 1, 1});
    life.rig.fabric->place_lds(2, {1, 0, 2});
}

void early(Life& life) {
    const CompositionId id = life.create("a", "host0", 1).id;
    life.release(id);
    life.reach_end(id);
}

void two_at_once(Life& life) {
    const CompositionId a = life.create("a", "host0", 1).id;
    const CompositionId b = life.create("b", "host1", 1).id;
    life.reach_online(a);
    life.reach_online(b);
    life.release(b);
    life.release(a);
    life.reach_end(a);
    life.reach_end(b);
}

// Parts on two devices, side by side or as one region.
void two_devices(Life& life) {
    life.rig.fabric->add_mld(2, {1, 1});
    life.rig.fabric->add_mld(3, {1, 1});
}
void in_two_parts(Life& life, PlacementKind kind, std::uint8_t ways) {
    PlacementPolicy policy;
    policy.kind = kind;
    policy.ways = ways;
    const CompositionId id = life.create("a", "host0", 2, {}, policy).id;
    life.reach_online(id);
    life.release(id);
    life.reach_end(id);
}
void spread(Life& life) { in_two_parts(life, PlacementKind::kSpread, 1); }
void interleaved(Life& life) { in_two_parts(life, PlacementKind::kBandwidth, 2); }

void to_grow(Life& life) { life.rig.fabric->add_mld(2, {1, 1, 1}); }
void grow_and_shrink(Life& life) {
    const CompositionId id = life.create("a", "host0", 1).id;
    life.reach_online(id);
    if (!life.marked("grown")) life.resize(id, 2);
    life.mark("grown");
    if (!life.marked("shrunk")) life.resize(id, 1);
    life.mark("shrunk");
    life.release(id);
    life.reach_end(id);
}

// A large piece goes, a small one comes in exchange.
void to_exchange(Life& life) { life.rig.fabric->add_mld(2, {4, 0, 0}, 2); }
void exchange(Life& life) {
    const CompositionId id = life.create("a", "host0", 4).id;
    life.reach_online(id);
    if (!life.marked("exchanged")) life.resize(id, 2);
    life.mark("exchanged");
    life.release(id);
    life.reach_end(id);
}

// What comes is refused by the switch, by the host, or passed over until the deadline: what there is stays.
void refuses_a_second_bind(Life& life) {
    to_exchange(life);
    life.rig.fabric->fault = [&life](std::string_view command,
                                     FakeSwitch::When when) -> std::optional<Error> {
        const bool first = life.rig.fabric->calls["bind"] == 0;
        if (command != "bind" || when != FakeSwitch::When::kBefore || first) return std::nullopt;
        return Error{ErrorCode::kInvalidArgument, "Invalid input: refused"};
    };
}
void to_exchange_in_vain(Life& life, FakeAgent::NewMemory new_memory) {
    to_exchange(life);
    // After a restart as before it, from the first report on.
    if (life.marked("online")) life.rig.agents[0]->new_memory = new_memory;
}
void exchange_in_vain(Life& life, FakeAgent::NewMemory new_memory) {
    const CompositionId id = life.create("a", "host0", 4).id;
    life.reach_online(id);
    life.mark("online");
    life.rig.agents[0]->new_memory = new_memory;
    if (!life.marked("tried")) life.resize_in_vain(id, 4, 2);
    life.mark("tried");
    life.release(id);
    life.reach_end(id);
}
void exchange_not_bound(Life& life) { exchange_in_vain(life, FakeAgent::NewMemory::kOnlined); }
void refuses_new_memory(Life& life) { to_exchange_in_vain(life, FakeAgent::NewMemory::kRefused); }
void exchange_not_onlined(Life& life) { exchange_in_vain(life, FakeAgent::NewMemory::kRefused); }
void ignores_new_memory(Life& life) {
    to_exchange_in_vain(life, FakeAgent::NewMemory::kIgnored);
    life.rig.config.timing.exchange_deadline = Milliseconds(50);
}
void exchange_overdue(Life& life) { exchange_in_vain(life, FakeAgent::NewMemory::kIgnored); }

// The lease ends by itself.
void lease(Life& life) { life.reach_end(life.create("a", "host0", 1, std::chrono::seconds(1)).id); }

void fails_to_erase_once(Life& life) {
    two_lds(life);
    life.rig.fabric->fault = [&life, tries = 0](std::string_view command,
                                                FakeSwitch::When when) mutable -> std::optional<Error> {
        if (command != "sanitize" || when != FakeSwitch::When::kBefore || ++tries > 1) return std::nullopt;
        return Error{ErrorCode::kUnavailable, "the connection was lost"};
    };
}

// Its memory cannot be erased: it ends, the memory waits in quarantine until it can.
void bad_media(Life& life) {
    two_lds(life);
    life.rig.config.erase_attempts = 1;
    life.rig.config.timing.quarantine_retry = Milliseconds(20);
    if (!life.marked("healed")) {
        life.rig.fabric->fault = [&life](std::string_view command,
                                         FakeSwitch::When when) -> std::optional<Error> {
            const bool unbound_once = life.rig.fabric->calls["unbind"] > 0;
            if (command != "sanitize" || when != FakeSwitch::When::kBefore || !unbound_once ||
                life.marked("healed"))
                return std::nullopt;
            return Error{ErrorCode::kInternal, "Hardware error: media failure"};
        };
    }
}
void quarantine(Life& life) {
    const CompositionId id = life.create("a", "host0", 1).id;
    life.reach_online(id);
    life.release(id);
    life.reach_end(id);
    life.mark("healed");
    life.until("back from quarantine", [&] {
        const Pool pool = life.rig.manager->pool();
        return pool.free == pool.capacity;
    });
}

// One of the two LDs holds what another host wrote, whatever its device says.
void lies_about_erasing(Life& life) {
    two_lds(life);
    life.rig.fabric->sanitize_lies = true;
    life.rig.fabric->port(2).lds[0].stale = true;  // until what the file says is loaded
}
void not_erased(Life& life) {
    const CompositionId id = life.create("a", "host0", 1).id;
    life.reach_online(id);
    life.release(id);
    life.reach_end(id);
    life.until("in quarantine until an operator lifts it", [&] {
        for (const FakeLd& ld : life.rig.fabric->port(2).lds)
            if (ld.stale) (void)life.rig.run(life.rig.manager->lift_quarantine(SerialNumber{ld.serial}));
        const Pool pool = life.rig.manager->pool();
        return pool.free == pool.capacity;
    });
}

void may_be_rebooted(Life& life) {
    two_lds(life);
    if (life.marked("rebooted")) life.rig.agents[0]->boot_id = "boot-2";
}
void reboot(Life& life) {
    const CompositionId id = life.create("a", "host0", 1).id;
    life.reach_online(id);
    if (!life.marked("rebooted") && !is_end(life.rig.get(id).state)) {
        life.mark("rebooted");
        life.rig.agents[0]->boot_id = "boot-2";
        life.rig.report(*life.rig.agents[0]);
        life.reach_online(id);
    }
    life.release(id);
    life.reach_end(id);
}

void drains_slowly(Life& life) {
    hold_on(life);
    life.rig.config.timing.drain_deadline = Milliseconds(20);
}
void drain_deadline(Life& life) {
    const CompositionId id = life.create("a", "host0", 1).id;
    life.reach_online(id);
    life.release(id);
    life.until("overdue", [&] {
        return is_end(life.rig.get(id).state) || life.rig.has_event("composition.drain-overdue");
    });
    life.rig.agents[0]->refuses_to_let_go = false;
    life.rig.report(*life.rig.agents[0]);
    life.reach_end(id);
}

// Bound before this manager ever ran.
void bound_already(Life& life) {
    two_lds(life);
    if (life.marked("switch.json")) return;
    fmapi::Vppb& vppb = life.rig.fabric->vppb(0, 1);
    vppb.binding = fmapi::VppbBinding::kBoundLd;
    vppb.port = 2;
    vppb.ld = 1;
}
void adoption(Life& life) {
    life.until("adopted", [&] { return life.rig.manager->list({}).items.size() == 1; });
    const CompositionId id = life.rig.manager->list({}).items[0].id;
    life.reach_online(id);
    life.release(id);
    life.reach_end(id);
}

// Several clients with different wishes, told by the seed.
void storm(Life& life) {
    std::mt19937_64 random(life.seed);
    enum class Wish { kUse, kForce, kGiveUp };
    struct Client {
        std::string key, host;
        Wish wish;
    };
    std::vector<Client> clients;
    for (int i = 0; i < 4; ++i)
        clients.push_back({fmt::format("key-{}", i), random() % 2 == 0 ? "host0" : "host1",
                           static_cast<Wish>(random() % 3)});
    std::vector<CompositionId> ids;
    for (const Client& one : clients) ids.push_back(life.create(one.key, one.host, 1).id);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (clients[i].wish != Wish::kGiveUp) life.reach_online(ids[i]);
        life.release(ids[i], clients[i].wish == Wish::kForce);
    }
    for (const CompositionId& id : ids) life.reach_end(id);
}

}  // namespace

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all{
        {"plain", two_lds, plain, 1},
        {"carve", to_be_carved, carve, 1},
        {"carve-refused", in_pieces, carve_refused, 2},
        {"carve-fails", one_in_pieces, carve_refused, 2},
        {"force", hold_on, force, 1},
        {"early", two_lds, early, 1},
        {"two-at-once", two_lds, two_at_once, 2},
        {"lease", two_lds, lease, 1, 1, false},
        {"erase-retried", fails_to_erase_once, plain, 1},
        {"quarantine", bad_media, quarantine, 1},
        {"not-erased", lies_about_erasing, not_erased, 1, 1, true, 1},
        {"reboot", may_be_rebooted, reboot, 1},
        {"drain-deadline", drains_slowly, drain_deadline, 1},
        {"adoption", bound_already, adoption, 1},
        {"storm", four_lds, storm, 4, 4},
        {"spread", two_devices, spread, 1, 1, true, 1},
        {"interleaved", two_devices, interleaved, 1, 1, true, 1},
        {"grow-and-shrink", to_grow, grow_and_shrink, 1, 1, true, 1},
        {"exchange", to_exchange, exchange, 1, 1, true, 1},
        {"exchange-not-bound", refuses_a_second_bind, exchange_not_bound, 1, 1, true, 1},
        {"exchange-not-onlined", refuses_new_memory, exchange_not_onlined, 1, 1, true, 1},
        {"exchange-overdue", ignores_new_memory, exchange_overdue, 1, 1, true, 1},
    };
    return all;
}

std::vector<std::string> violations(Life& life, const Scenario& scenario) {
    Rig& rig = life.rig;
    std::vector<std::string> wrong = rig.fabric->violations;
    const std::vector<Composition> all = rig.manager->list({}).items;
    if (static_cast<int>(all.size()) != scenario.compositions)
        wrong.push_back(fmt::format("{} compositions instead of {}", all.size(), scenario.compositions));
    const bool may_fail = scenario.name == "quarantine" || scenario.name == "carve-fails";
    for (const Composition& c : all)
        if (c.state != CompositionState::kReleased && !(may_fail && c.state == CompositionState::kFailed))
            wrong.push_back(fmt::format("{} is {}: {}", c.id.value, to_string(c.state),
                                        c.reason ? c.reason->detail : ""));
    for (const FakeVcs& vcs : rig.fabric->vcss)
        for (const fmapi::Vppb& one : vcs.vppbs)
            if (one.binding != fmapi::VppbBinding::kUnbound) wrong.emplace_back("a vPPB is still bound");
    const int bound = rig.fabric->calls["bind"];
    const int found_bound = scenario.name == "adoption" ? 1 : 0;
    const int parts = scenario.compositions + scenario.more_parts;
    if (bound > parts - found_bound) wrong.push_back(fmt::format("bound {} times", bound));
    if (rig.fabric->calls["unbind"] != bound + found_bound) wrong.emplace_back("unbinds are not binds");
    if (bound + found_bound >= parts)
        for (const Composition& c : all)
            for (const Part& part : c.parts)
                for (const FakeLd& ld : rig.fabric->port(part.port).lds)
                    if (part.state == CompositionState::kReleased && ld.serial == part.serial.value &&
                        ld.dirty)
                        wrong.emplace_back("released without an erase");
    const Pool pool = rig.manager->pool();
    if (pool.free != pool.capacity) wrong.emplace_back("the pool did not get everything back");
    return wrong;
}

}  // namespace memtide::fm::crash
