#include "fabric-manager/engine/manager.h"

#include "fabric-manager/engine/core.h"

namespace memtide::fm {

Manager::Manager(std::shared_ptr<Core> core) : core_(std::move(core)) {}

Result<std::unique_ptr<Manager>> Manager::open(boost::asio::any_io_executor executor, ManagerConfig config,
                                               std::unique_ptr<Store> store, FmApiClients clients,
                                               metrics::Registry& metrics) {
    auto core = std::make_shared<Core>(std::move(executor), std::move(config), std::move(store), metrics);
    if (Result<> ok = core->set_up(std::move(clients)); !ok) return std::unexpected(ok.error());
    return std::unique_ptr<Manager>(new Manager(std::move(core)));
}

Manager::~Manager() {
    core_->abandon();
    // Waits for what is queued; its thread must not outlive the executor it posts to.
    core_->close_store();
}

void Manager::start() { core_->start(); }
boost::asio::awaitable<void> Manager::stop() { return core_->stop(); }

boost::asio::awaitable<Outcome<Created>> Manager::create(CompositionRequest request,
                                                         std::optional<IdempotencyKey> key) {
    return core_->create(std::move(request), std::move(key));
}
boost::asio::awaitable<Outcome<Composition>> Manager::release(CompositionId id, bool force,
                                                              Precondition precondition) {
    return core_->release(std::move(id), force, std::move(precondition));
}
boost::asio::awaitable<std::optional<Outcome<Created>>> Manager::look_up(IdempotencyKey key) {
    return core_->look_up(std::move(key));
}
Outcome<PlannedComposition> Manager::plan(CompositionRequest request) const {
    return core_->plan(std::move(request));
}
boost::asio::awaitable<Outcome<Composition>> Manager::change(CompositionId id,
                                                             CompositionChangeRequest request,
                                                             Precondition precondition) {
    return core_->change(std::move(id), std::move(request), std::move(precondition));
}
Outcome<Composition> Manager::get(const CompositionId& id) const { return core_->get(id); }
CompositionPage Manager::list(const CompositionQuery& query) const { return core_->list(query); }
boost::asio::awaitable<Outcome<Composition>> Manager::wait(CompositionId id, CompositionState state,
                                                           Milliseconds timeout) {
    return core_->wait(std::move(id), state, timeout);
}
boost::asio::awaitable<Outcome<>> Manager::lift_quarantine(SerialNumber ld) {
    return core_->lift_quarantine(ld);
}
boost::asio::awaitable<Outcome<History>> Manager::history(CompositionId id, std::uint64_t after,
                                                          std::size_t limit) {
    return core_->history(std::move(id), after, limit);
}

const Inventory& Manager::inventory() const { return core_->inventory(); }
Bytes Manager::composed(const HostId& host) const { return core_->composed(host); }
Pool Manager::pool() const { return core_->inventory().pool(); }
std::vector<Host> Manager::hosts() const { return core_->hosts(); }
std::vector<Switch> Manager::switches() const {
    std::vector<Switch> list;
    for (const auto& [id, one] : core_->inventory().switches()) list.push_back(one);
    return list;
}
std::vector<Device> Manager::devices() const {
    std::vector<Device> list;
    for (const auto& [id, one] : core_->inventory().devices()) list.push_back(one);
    return list;
}
Topology Manager::topology() const { return {hosts(), switches(), devices()}; }
std::vector<TenantStatus> Manager::tenants() const { return core_->tenants(); }
Readiness Manager::readiness() const { return core_->readiness(); }

boost::asio::awaitable<Outcome<DesiredState>> Manager::desired(HostId host,
                                                               std::optional<std::uint64_t> after,
                                                               Milliseconds timeout) {
    return core_->desired(std::move(host), after, timeout);
}
boost::asio::awaitable<Outcome<>> Manager::observed(HostId host, ObservedReport report) {
    auto answer = [](std::shared_ptr<Core> core, HostId id, ObservedReport what) -> Async<Outcome<>> {
        co_return core->observed(id, std::move(what));
    };
    return answer(core_, std::move(host), std::move(report));
}

boost::asio::awaitable<Outcome<std::vector<Event>>> Manager::events(std::uint64_t after, std::size_t limit,
                                                                    Milliseconds timeout) {
    return core_->events(after, limit, timeout);
}
std::uint64_t Manager::last_event() const { return core_->last_event(); }
std::uint64_t Manager::oldest_event() const { return core_->oldest_event(); }

}  // namespace memtide::fm
