#include "tests/fabric-manager/engine/rig.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace memtide::fm {

namespace {

constexpr std::chrono::seconds kPatience{20};

}  // namespace

PlacementPolicy spread(std::uint8_t devices, bool reprovide) {
    PlacementPolicy policy;
    policy.kind = PlacementKind::kSpread;
    policy.max_devices = devices;
    policy.reprovide = reprovide;
    return policy;
}

PlacementPolicy ways(std::uint8_t count) {
    PlacementPolicy policy;
    policy.kind = PlacementKind::kBandwidth;
    policy.ways = count;
    return policy;
}

boost::asio::awaitable<void> follow(Manager* manager, std::shared_ptr<bool> alive,
                                    std::shared_ptr<FakeAgent> agent, std::shared_ptr<FakeSwitch> fabric) {
    std::optional<std::uint64_t> seen;
    for (;;) {
        const Outcome<DesiredState> desired =
            co_await manager->desired(agent->host, seen, std::chrono::milliseconds(3'600'000));
        if (!desired || !*alive) co_return;
        seen = desired->revision;
        if (!agent->enabled) continue;
        ObservedReport report = agent->act(*fabric, *desired);
        const Outcome<> accepted = co_await manager->observed(agent->host, std::move(report));
        if (!*alive || (!accepted && accepted.error().kind == ErrorCode::kCancelled)) co_return;
    }
}

ObservedReport FakeAgent::act(FakeSwitch& fabric, const DesiredState& desired) {
    ++reports;
    ObservedReport report{"1.0", boot_id, desired.revision, {}, windows, {}, {}};
    for (const DesiredRegion& one : desired.regions) {
        ObservedRegion seen;
        seen.id = one.id;
        seen.serials = one.serials;
        std::vector<FakeLd*> lds;
        for (const SerialNumber serial : one.serials)
            if (FakeLd* ld = fabric.visible(vcs, serial.value))
                lds.push_back(ld);
            else if (FakeLd* there = also ? also->visible(vcs, serial.value) : nullptr)
                lds.push_back(there);
        if (one.online && offers != Offers::kIgnored)
            for (FakeLd* ld : lds) fabric.accept_capacity(*ld, offers == Offers::kTaken);
        if (lds.empty()) {
            seen.state = ObservedState::kAbsent;
        } else if (one.online && std::ranges::any_of(lds, [](const FakeLd* ld) { return ld->size == 0; })) {
            seen.state = ObservedState::kFound;
        } else if (one.online && lds.size() < one.serials.size()) {
            seen.state = ObservedState::kFound;
        } else if (one.online && new_memory != NewMemory::kOnlined &&
                   std::ranges::none_of(lds, [](const FakeLd* ld) { return ld->used; })) {
            seen.state = new_memory == NewMemory::kIgnored ? ObservedState::kFound : ObservedState::kFailed;
            if (seen.state == ObservedState::kFailed) seen.error = Reason{"no-window", "no window has room"};
        } else if (one.online && !read_back(lds, one, seen)) {
            seen.state = ObservedState::kFailed;
            seen.error = Reason{"not-erased", "it holds what an erase does not leave"};
        } else if (one.online) {
            for (FakeLd* ld : lds) {
                if (ld->stale && knows_read_back && one.verify)
                    fabric.violations.push_back(fmt::format("{:#x} was online and not erased", ld->serial));
                ld->online = true;
                ld->used = true;
            }
            seen.state = ObservedState::kOnline;
            seen.node = 1;
            seen.region = "region0";
            seen.online_bytes = one.size;
        } else if (refuses_to_let_go) {
            seen.state = ObservedState::kDraining;
            seen.holders = holders;
        } else {
            for (FakeLd* ld : lds) {
                ld->online = false;
                if (gives_back) fabric.give_back_capacity(*ld);
            }
            seen.state = ObservedState::kOffline;
        }
        report.regions.push_back(std::move(seen));
    }
    report.boot_id = boot_id;
    fabric.save();
    return report;
}

bool FakeAgent::read_back(const std::vector<FakeLd*>& lds, const DesiredRegion& wanted,
                          ObservedRegion& seen) {
    if (!wanted.verify || !knows_read_back) return true;
    if (!reboots_at_read_back.empty()) boot_id = std::exchange(reboots_at_read_back, {});
    for (const FakeLd* ld : lds) {
        if (ld->used) return true;  // by this very composition
        if (ld->stale) seen.not_erased.push_back(SerialNumber{ld->serial});
    }
    if (seen.not_erased.empty()) seen.verified_pages = wanted.verify->samples;
    return seen.not_erased.empty();
}

Rig::Rig() {
    fabric = std::make_shared<FakeSwitch>(io_.get_executor());  // io_ is there by now
    config.switches = {{SwitchId("switch0"), "fake://switch0"}};
    config.hosts = {{HostId("host0"), {{SwitchId("switch0"), 0}}},
                    {HostId("host1"), {{SwitchId("switch0"), 1}}}};
    config.timing.retry_min = Milliseconds(1);
    config.timing.retry_max = Milliseconds(20);
    config.timing.switch_poll = Milliseconds(20);
    agents = {std::make_shared<FakeAgent>(), std::make_shared<FakeAgent>()};
    agents[0]->host = HostId("host0");
    agents[1]->host = HostId("host1");
    agents[1]->vcs = 1;
    fabric->add_hosts(4);
}

Rig::~Rig() {
    if (manager) stop();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
}

void Rig::quick() {
    config.timing.gone_after = Milliseconds(10);
    config.timing.switch_poll = Milliseconds(10);
}

FakeSwitch& Rig::add_second_switch() {
    const auto second = std::make_shared<FakeSwitch>(io_.get_executor());
    second->add_hosts(4);
    others[SwitchId("switch1")] = second;
    config.switches.push_back({SwitchId("switch1"), "fake://switch1"});
    config.hosts[0].attach.push_back({SwitchId("switch1"), 0});
    agents[0]->also = second;
    return *second;
}

void Rig::start() {
    if (store.path.empty()) {
        std::string name = (std::filesystem::temp_directory_path() / "memtide-engine-XXXXXX").string();
        folder_ = mkdtemp(name.data());
        store.path = (folder_ / "state.db").string();
    }
    metrics_ = std::make_unique<metrics::Registry>();
    Result<std::unique_ptr<Store>> opened = open_sqlite_store(store);
    if (!opened) throw std::runtime_error(opened.error().message);
    FmApiClients clients{{SwitchId("switch0"), fabric}};
    for (const auto& [id, other] : others) clients[id] = other;
    Result<std::unique_ptr<Manager>> result =
        Manager::open(io_.get_executor(), config, *std::move(opened), std::move(clients), *metrics_);
    if (!result) throw std::runtime_error(result.error().message);
    manager = *std::move(result);
    manager->start();
    alive_ = std::make_shared<bool>(true);
    for (const auto& agent : agents)
        boost::asio::co_spawn(io_, follow(manager.get(), alive_, agent, fabric), boost::asio::detached);
}

void Rig::start_ready() {
    start();
    if (!run_until([&] { return manager->readiness().ready; })) throw std::runtime_error("never ready");
}

void Rig::stop() {
    bool stopped = false;
    boost::asio::co_spawn(io_, manager->stop(), [&](std::exception_ptr) { stopped = true; });
    if (!run_until([&] { return stopped; })) std::abort();
    settle();
    *alive_ = false;
    manager.reset();
}

void Rig::kill() {
    *alive_ = false;
    manager.reset();
    settle();
}

bool Rig::run_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    io_.restart();
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        io_.restart();
        io_.run_one_for(std::chrono::milliseconds(5));
    }
    return true;
}

void Rig::settle() {
    io_.restart();
    if (manager) {
        io_.run_for(std::chrono::milliseconds(50));
        return;
    }
    while (io_.run_one_for(std::chrono::milliseconds(10)) != 0) io_.restart();
}

Outcome<Created> Rig::create(const std::string& host, std::uint64_t units,
                             std::optional<IdempotencyKey> key) {
    return create(host, units, PlacementPolicy{}, std::move(key));
}

Outcome<Created> Rig::create(const std::string& host, std::uint64_t units, PlacementPolicy policy,
                             std::optional<IdempotencyKey> key) {
    CompositionRequest request;
    request.host = HostId(host);
    request.size = kCxlGranule * units;
    request.placement = policy;
    return run(manager->create(std::move(request), std::move(key)));
}

Composition Rig::online(const std::string& host, std::uint64_t units, PlacementPolicy policy) {
    const Outcome<Created> created = create(host, units, policy);
    if (!created) throw std::runtime_error(created.error().detail);
    if (!reaches(created->composition.id, CompositionState::kOnline)) throw std::runtime_error("not online");
    return get(created->composition.id);
}

Composition Rig::two_parts(bool reprovide) {
    fabric->add_mld(2, {1});
    fabric->add_mld(3, {1});
    start_ready();
    return online("host0", 2, spread(2, reprovide));
}

Outcome<Composition> Rig::resize(const CompositionId& id, std::uint64_t units, Precondition precondition) {
    CompositionChangeRequest request;
    request.size = kCxlGranule * units;
    return run(manager->change(id, std::move(request), std::move(precondition)));
}

Outcome<Composition> Rig::release(const CompositionId& id, bool force) {
    return run(manager->release(id, force));
}

bool Rig::reaches(const CompositionId& id, CompositionState state) {
    return run_until([&] {
        const Outcome<Composition> c = manager->get(id);
        return c && c->state == state;
    });
}

std::vector<Event> Rig::events() { return *run(manager->events(0, 100'000, Milliseconds(0))); }

bool Rig::has_event(const std::string& type, const std::string& part) {
    for (const Event& event : events())
        if (event.type == type && (event.detail + event.code).find(part) != std::string::npos) return true;
    return false;
}

int Rig::events_of(const std::string& type) {
    return static_cast<int>(std::ranges::count(events(), type, &Event::type));
}

void Rig::released(const CompositionId& id) {
    if (!release(id) || !reaches(id, CompositionState::kReleased))
        throw std::runtime_error("composition " + id.value + " was not released");
}

std::vector<std::string> Rig::wrong() {
    std::vector<std::string> result = fabric->violations;
    for (const auto& [id, other] : others)
        result.insert(result.end(), other->violations.begin(), other->violations.end());
    return result;
}

void Rig::report(FakeAgent& agent) {
    const Outcome<DesiredState> desired = run(manager->desired(agent.host, std::nullopt, Milliseconds(0)));
    (void)run(manager->observed(agent.host, agent.act(*fabric, *desired)));
}

}  // namespace memtide::fm
