// Reading switches, and what readings say of devices.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/read_switch.h"

namespace memtide::fm {

namespace {

Event switch_event(std::string type, const SwitchId& id, std::optional<DeviceId> device, std::string code,
                   std::string detail) {
    Event event;
    event.type = std::move(type);
    event.switch_id = id;
    event.device = std::move(device);
    event.code = std::move(code);
    event.detail = std::move(detail);
    return event;
}

std::string where_text(const DeviceReading& device) {
    std::string text = fmt::format("port {}, {}", device.port, format_bytes(device.size));
    if (device.multi_headed)
        text += fmt::format(", head {} of {}", device.multi_headed->head, device.multi_headed->heads);
    return text;
}

}  // namespace

// --- Reading ---

Async<> Core::run_switch(SwitchId id) {
    SwitchState& state = *switches_.at(id);
    int failures = 0;
    while (!stopping_) {
        state.look_wanted = false;
        // Before the reading, which then shows what the records speak of. Over a connection that is new, the
        // reading comes first.
        if (state.records.connection == state.client->connections()) co_await collect_records(id);
        if (stopping_) break;
        const Result<> read = co_await read_and_apply(id);
        if (stopping_) break;
        set_up_or_down(id, read);
        if (std::exchange(state.records.hung_up, false) && read) ++state.records.lost_connections;
        if (read) {
            co_await follow_moves(id);
            co_await adopt(id);
            if (stopping_) break;
        }
        kick(std::set<PartId>(state.active));
        if (read) heal_all();
        failures = read ? 0 : failures + 1;
        if (state.doubtful && read) continue;  // doubted again while it was being adopted
        if (read && state.records.connection != state.client->connections()) {
            const bool found = co_await collect_records(id);
            if (found) continue;
        }
        const Milliseconds pause = read ? config_.timing.switch_poll : backoff(failures);
        co_await await_look(id, pause);
    }
}

Async<Result<>> Core::read_and_apply(SwitchId id) {
    SwitchState& state = *switches_.at(id);
    // No bind or unbind goes on while it is read, so that the picture is of one moment.
    const AsyncMutex::Lock lock = co_await state.operation.lock();
    // Those that take long must not keep those that answer waiting.
    TurnQueue& turns = state.failed ? retriers_ : readers_;
    const TurnQueue::Turn turn = co_await turns.take();
    if (stopping_) co_return fail(ErrorCode::kCancelled, "the manager is stopping");
    const SteadyTime began = std::chrono::steady_clock::now();
    const std::uint64_t connection = state.client->connections();
    std::map<std::uint8_t, int> unanswered_before = state.unanswered_heads;
    Result<FabricReading> reading =
        co_await read_switch(*state.client, id, inventory_, state.unanswered_heads);
    state.failed = !reading;
    if (!reading) {
        state.doubtful = true;
        co_return std::unexpected(reading.error());
    }
    // What was read over two connections may be of two lives of the switch.
    const bool torn = connection != 0 && connection != state.client->connections();
    const bool watched = connection == state.connection && !torn;
    state.doubtful = torn;
    state.read_began = began;
    state.connection = state.client->connections();
    apply_reading(id, *reading);
    // Who gave no answer for the first time need not wait for its second chance.
    for (const auto& [port, times] : state.unanswered_heads)
        if (times == 1 && unanswered_before[port] == 0) state.look_wanted = true;
    if (!watched) inventory_.forget_clean(id);
    co_return Result<>();
}

void Core::set_up_or_down(const SwitchId& id, const Result<>& read) {
    SwitchState& state = *switches_.at(id);
    const Switch before = *inventory_.find_switch(id);
    const bool first = !std::exchange(state.tried, true);
    if (read) {
        inventory_.switch_up(id, now());
        DialectInUse dialect = state.client->dialect();
        inventory_.switch_speaks(id, std::move(dialect.name), dialect.detected, dialect.in_flight);
        Event up = switch_event("switch.up", id, std::nullopt, "", "it answers at " + before.address);
        if (!before.up && first) emit(std::move(up));
        if (!before.up && !first) tell_change({.switch_id = id}, std::move(up));
        return;
    }
    inventory_.switch_down(id, read.error().message);
    Event down = switch_event("switch.down", id, std::nullopt, std::string(to_string(read.error().code)),
                              read.error().message);
    if (first)
        emit(std::move(down));
    else if (before.up)
        tell_change({.switch_id = id}, std::move(down));
}

void Core::apply_reading(const SwitchId& id, const FabricReading& reading) {
    inventory_.apply(id, reading.fabric);
    std::map<std::uint8_t, Unusable> unusable = apply_devices(id, reading);
    for (const FabricReading::Unreadable& one : reading.unreadable)
        unusable[one.port] = {"unreadable", one.why};
    // Said once, not at every reading.
    std::map<std::uint8_t, Unusable>& told = switches_.at(id)->unusable;
    for (const auto& [port, one] : unusable)
        if (const auto before = told.find(port); before == told.end() || before->second != one)
            emit(switch_event("device.unreadable", id, std::nullopt, one.code,
                              fmt::format("the device on port {} cannot be used: {}", port, one.why)));
    told = std::move(unusable);
}

std::map<std::uint8_t, Unusable> Core::apply_devices(const SwitchId& id, const FabricReading& reading) {
    std::map<std::uint8_t, Unusable> unusable;
    take_away(id, reading);
    for (const DeviceReading& one : reading.devices) {
        if (may_have_moved(id, one)) continue;
        const Device* before = inventory_.device(device_id(one.kind, one.serial, id, one.port));
        const bool seen_before = before != nullptr;
        const bool known = seen_before && before->present;
        const Device* here = inventory_.device_at(id, one.port);
        const bool at_this_port = here != nullptr && here == before;
        const Place place = seen_before ? Place{before->switch_id, before->port} : Place{id, one.port};
        const Result<DeviceId> name = inventory_.apply(id, one);
        if (!name) {
            unusable[one.port] = {
                name.error().code == ErrorCode::kProtocol ? "heads-disagree" : "duplicate-serial",
                name.error().message};
            continue;
        }
        Event added = switch_event("device.added", id, *name, "", where_text(one));
        if (one.multi_headed) {
            if (!at_this_port) emit(std::move(added));
        } else if (place.switch_id != id || place.port != one.port) {
            note_move(*name, place);
        } else if (seen_before && !known) {
            tell_change({.device = *name}, std::move(added));
        } else if (!seen_before) {
            emit(std::move(added));
        }
        if (!known) ask_for_health_soon(id, *name);
        keep_away({.device = *name});
        restore_quarantine(*name);
    }
    return unusable;
}

void Core::restore_quarantine(const DeviceId& name) {
    const Device device = *inventory_.device(name);
    for (const LogicalDevice& ld : device.lds)
        if (quarantine_.contains(ld.serial)) inventory_.set_quarantined({name, ld.id}, true);
}

// Whether the switch was connected to again since it was read: it may have been restarted.
bool Core::is_connected_anew(const SwitchId& id) const {
    const SwitchState& state = *switches_.at(id);
    return state.client->connections() != state.connection;
}

void Core::doubt(const SwitchId& id) {
    SwitchState& state = *switches_.at(id);
    state.doubtful = true;
    state.look_wanted = true;
    state.read_now.notify_all();
}

// --- Quarantine ---

// LDs that could not be erased are tried again now and then, so that memory is not lost for good.
Async<> Core::run_quarantine() {
    while (!stopping_) {
        co_await pause_us(config_.timing.quarantine_retry);
        if (stopping_) break;
        std::vector<LdAddress> quarantined;
        for (const auto& [name, device] : inventory_.devices())
            for (const LogicalDevice& ld : device.lds)
                if (device.present && ld.use == LdUse::kQuarantined) quarantined.push_back({name, ld.id});
        for (const LdAddress& address : quarantined) co_await retry_quarantined(address);
    }
}

Async<> Core::retry_quarantined(LdAddress address) {
    const auto way = inventory_.way_to(address);
    const LogicalDevice* ld = inventory_.ld(address);
    if (!way || ld->use != LdUse::kQuarantined) co_return;
    // Its device has said before that it was erased, and it was not.
    const auto known = quarantine_.find(ld->serial);
    if (ld->owner || (known != quarantine_.end() && known->second.is_held())) co_return;
    const SwitchId switch_id = way->first;
    const QuarantineRecord record{ld->serial, ld->size, {}, true};
    const std::uint64_t carving = carvings_[address.device];
    if (is_connected_anew(switch_id)) co_return;  // at the next turn, when it has been read
    const Result<> erased = co_await erase(address, switch_id, way->second, std::nullopt);
    if (!erased || carving != carvings_[address.device] || is_connected_anew(switch_id)) co_return;
    ld = inventory_.ld(address);
    const bool same_size = ld != nullptr && (ld->dynamic || ld->size == record.size);
    if (!same_size || ld->bound_at) co_return;
    Mutation mutation;
    mutation.quarantine.push_back(record);
    const Result<> durable = co_await apply(std::move(mutation));
    if (!durable) co_return;
    quarantine_.erase(record.serial);
    inventory_.set_quarantined(address, false);
    emit(switch_event("ld.recovered", switch_id, address.device, "",
                      fmt::format("LD {} was erased after all and is back in the pool", address.ld.value)));
}

// --- Looking ---

std::vector<Host> Core::hosts() const {
    std::vector<Host> hosts;
    for (const auto& [id, known] : inventory_.hosts()) {
        Host host = known;
        host.composed = composed(id);
        hosts.push_back(std::move(host));
    }
    return hosts;
}

Bytes Core::composed(const HostId& host) const {
    Bytes sum;
    const auto agent = agents_.find(host);
    if (agent == agents_.end()) return sum;
    for (const CompositionId& one : agent->second->active) sum += held_size(find(one)->c);
    return sum;
}

Readiness Core::readiness() const {
    Readiness result{true, {}};
    for (const auto& [id, state] : switches_) {
        const Switch& known = *inventory_.find_switch(id);
        if (!state->tried) {
            result.ready = false;
            result.reasons.push_back(fmt::format("switch {} has not been read yet", id.value));
        } else if (!known.up) {
            result.reasons.push_back(fmt::format("switch {} is down: {}", id.value, known.error));
        }
    }
    if (!state_damage_.empty())
        result.reasons.push_back("the state could not be recovered if it were damaged now: " + state_damage_);
    if (stopping_) result = {false, {"the manager is stopping"}};
    return result;
}

}  // namespace memtide::fm
