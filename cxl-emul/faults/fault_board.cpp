#include "cxl-emul/faults/fault_board.h"

#include <algorithm>
#include <map>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "common/log/log.h"
#include "cxl-emul/faults/equipment_faults.h"
#include "cxl-emul/faults/fault_place.h"
#include "cxl-emul/faults/fault_plan.h"
#include "cxl-emul/faults/fault_table.h"
#include "cxl-emul/faults/fault_text.h"

namespace memtide::emul {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kMostLive = 20'000;
constexpr std::size_t kMostRemembered = 1'000;  // that are over
constexpr std::uint64_t kDefaultSeed = 1;

std::chrono::milliseconds faster(std::chrono::milliseconds time, double speed) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(static_cast<double>(time.count()) / speed));
}

}  // namespace

struct FaultBoard::State : std::enable_shared_from_this<State> {
    struct Entry {
        Entry(const asio::any_io_executor& executor, FaultStatus first, FaultPlace where)
            : status(std::move(first)), place(std::move(where)), timer(executor) {}
        FaultStatus status;
        FaultPlace place;
        std::shared_ptr<ActiveFault> active;
        asio::steady_timer timer;
    };

    State(asio::any_io_executor ex, Equipment& what)
        : executor(std::move(ex)), equipment(what), faults(what) {
        for (const SwitchConfig& config : equipment.topology().switches) {
            plans[config.name] = std::make_shared<FaultPlan>(config);
            equipment.disturb(config.name, plans[config.name]);
        }
    }

    Result<FaultPlace> place(const Fault& fault) const {
        auto found = place_of(fault, equipment.topology());
        if (!found) return fail(ErrorCode::kInvalidArgument, std::move(found.error().message));
        return *std::move(found);
    }

    std::uint64_t add(Fault fault, FaultPlace where, std::chrono::milliseconds wait) {
        const std::uint64_t id = ++last_id;
        if (!fault.seed) fault.seed = seed_of(kDefaultSeed, id % kMostLive);
        const auto [place, fresh] = entries.try_emplace(
            id, executor, FaultStatus{id, std::move(fault), FaultStatus::State::kWaiting, 0},
            std::move(where));
        if (wait.count() <= 0)
            begin(place->second);
        else
            after(place->second, wait, &State::begin);
        return id;
    }

    void after(Entry& entry, std::chrono::milliseconds time, void (State::*what)(Entry&)) {
        entry.timer.expires_after(time);
        entry.timer.async_wait(
            [weak = weak_from_this(), id = entry.status.id, what](const boost::system::error_code& error) {
                const auto self = weak.lock();
                if (error || !self || self->stopped) return;
                if (const auto found = self->entries.find(id); found != self->entries.end())
                    (self.get()->*what)(found->second);
            });
    }

    void begin(Entry& entry) {
        if (entry.status.state != FaultStatus::State::kWaiting) return;
        const Fault& fault = entry.status.fault;
        entry.status.state = FaultStatus::State::kActive;
        entry.active = std::make_shared<ActiveFault>(fault, entry.place, fault.seed.value_or(kDefaultSeed));
        log::info("fault begins", {{"id", entry.status.id}, {"fault", to_string(fault)}});
        for (const SwitchId& name : entry.place.switches) plans.at(name)->add(entry.active);
        faults.begin(*entry.active);
        // Something that has no power for no time at all has lost it nevertheless.
        const bool at_once = fault.kind == FaultKind::kPowerCycle && !fault.lasts;
        if (fault.lasts || at_once)
            after(entry, fault.lasts.value_or(std::chrono::milliseconds(0)), &State::end);
    }

    void end(Entry& entry) {
        if (entry.status.state == FaultStatus::State::kOver) return;
        const bool began =
            std::exchange(entry.status.state, FaultStatus::State::kOver) == FaultStatus::State::kActive;
        entry.timer.cancel();
        if (!began) return;
        entry.status.hits = entry.active->hits();
        log::info("fault is over", {{"id", entry.status.id}, {"hits", entry.status.hits}});
        entry.active->end();
        for (const SwitchId& name : entry.place.switches) {
            plans.at(name)->remove(entry.active);
            equipment.look_again(name);
        }
        faults.end(*entry.active);
        entry.active.reset();
    }

    // A fault that has struck so often as it was to is over. One that holds an operation still does so as
    // long as it lasts.
    void settle() {
        for (auto& [id, entry] : entries) {
            if (!entry.active) continue;
            entry.status.hits = entry.active->hits();
            const bool holds = entry.status.fault.kind == FaultKind::kStuckOperation;
            if (entry.active->exhausted() && !holds) end(entry);
        }
        auto over = static_cast<std::size_t>(std::ranges::count_if(
            entries, [](const auto& one) { return one.second.status.state == FaultStatus::State::kOver; }));
        for (auto one = entries.begin(); one != entries.end() && over > kMostRemembered;) {
            const bool forget = one->second.status.state == FaultStatus::State::kOver;
            one = forget ? entries.erase(one) : std::next(one);
            if (forget) --over;
        }
    }

    Result<> make_room(std::size_t more) {
        settle();
        if (entries.size() + more <= kMostLive) return {};
        return fail(ErrorCode::kExhausted, fmt::format("more than {} faults", kMostLive));
    }

    asio::any_io_executor executor;
    Equipment& equipment;
    EquipmentFaults faults;
    std::map<SwitchId, std::shared_ptr<FaultPlan>> plans;
    std::map<std::uint64_t, Entry> entries;
    std::uint64_t last_id = 0;
    bool stopped = false;
};

FaultBoard::FaultBoard(asio::any_io_executor executor, Equipment& equipment)
    : state_(std::make_shared<State>(std::move(executor), equipment)) {}

FaultBoard::~FaultBoard() { stop(); }

const Topology& FaultBoard::topology() const { return state_->equipment.topology(); }

Result<std::uint64_t> FaultBoard::inject(Fault fault, std::chrono::milliseconds wait) {
    if (auto room = state_->make_room(1); !room) return std::unexpected(room.error());
    auto place = state_->place(fault);
    if (!place) return std::unexpected(place.error());
    return state_->add(std::move(fault), *std::move(place), wait);
}

Result<std::vector<std::uint64_t>> FaultBoard::play(const Scenario& scenario, double speed) {
    if (auto room = state_->make_room(scenario.faults.size()); !room) return std::unexpected(room.error());
    std::vector<FaultPlace> places;
    for (const ScheduledFault& next : scenario.faults) {
        auto place = state_->place(next.fault);
        if (!place) return std::unexpected(place.error());
        places.push_back(*std::move(place));
    }
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < places.size(); ++i) {
        ScheduledFault next = scenario.faults[i];
        if (next.fault.lasts) next.fault.lasts = faster(*next.fault.lasts, speed);
        ids.push_back(state_->add(std::move(next.fault), std::move(places[i]), faster(next.at, speed)));
    }
    return ids;
}

std::vector<FaultStatus> FaultBoard::list() {
    state_->settle();
    std::vector<FaultStatus> all;
    for (const auto& [id, entry] : state_->entries) all.push_back(entry.status);
    return all;
}

Result<> FaultBoard::clear(std::uint64_t id) {
    state_->settle();
    const auto found = state_->entries.find(id);
    if (found == state_->entries.end() || found->second.status.state == FaultStatus::State::kOver)
        return fail(ErrorCode::kNotFound, fmt::format("there is no fault {} that is not over", id));
    state_->end(found->second);
    return {};
}

void FaultBoard::clear_all() {
    for (auto& [id, entry] : state_->entries) state_->end(entry);
}

void FaultBoard::stop() {
    state_->stopped = true;
    for (auto& [id, entry] : state_->entries) entry.timer.cancel();
}

}  // namespace memtide::emul
