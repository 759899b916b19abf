#include "fabric-manager/engine/core.h"

#include <algorithm>
#include <exception>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/engine/meters.h"
#include "fabric-manager/store/backup.h"

namespace memtide::fm {

Core::Core(boost::asio::any_io_executor executor, ManagerConfig config, std::unique_ptr<Store> store,
           metrics::Registry& metrics)
    : executor_(executor),
      config_(std::move(config)),
      store_(std::move(store)),
      metrics_(metrics),
      stop_(executor),
      drained_(executor),
      lifting_(executor),
      key_done_(executor),
      deadlines_changed_(executor),
      flaps_(config_.flapping),
      flaps_changed_(executor),
      readers_(executor, config_.timing.readers),
      retriers_(executor, config_.timing.readers),
      event_added_(executor),
      random_(std::random_device{}()) {}

Result<> Core::set_up(FmApiClients clients) {
    for (const ManagerSwitch& one : config_.switches) {
        const auto client = clients.find(one.id);
        if (client == clients.end() || !client->second)
            return fail(ErrorCode::kInvalidArgument, fmt::format("switch {} has no client", one.id.value));
        if (switches_.contains(one.id))
            return fail(ErrorCode::kInvalidArgument, fmt::format("two switches are named {}", one.id.value));
        inventory_.add_switch(one.id, one.address);
        switches_[one.id] = std::make_unique<SwitchState>(executor_);
        switches_[one.id]->client = client->second;
    }
    std::map<HostAttachment, HostId> taken;
    for (const ManagerHost& one : config_.hosts) {
        if (agents_.contains(one.id))
            return fail(ErrorCode::kInvalidArgument, fmt::format("two hosts are named {}", one.id.value));
        for (const HostAttachment& at : one.attach) {
            if (!switches_.contains(at.switch_id))
                return fail(ErrorCode::kInvalidArgument,
                            fmt::format("host {} is attached to switch {}, which is not configured",
                                        one.id.value, at.switch_id.value));
            const auto [other, fresh] = taken.emplace(at, one.id);
            if (!fresh)
                return fail(ErrorCode::kInvalidArgument,
                            fmt::format("VCS {} of {} is attached to both {} and {}", at.vcs,
                                        at.switch_id.value, other->second.value, one.id.value));
        }
        inventory_.add_host(one.id, one.attach);
        agents_[one.id] = std::make_unique<AgentState>(executor_);
    }
    set_up_metrics();
    watch_state();
    return load();
}

void Core::watch_state() {
    store_->watch_damage([executor = executor_, weak = weak_from_this()](const std::string& damage) {
        boost::asio::post(executor, [weak, damage] {
            if (const std::shared_ptr<Core> self = weak.lock()) self->note_state_damage(damage);
        });
    });
}

void Core::note_state_damage(const std::string& damage) {
    Event event;
    event.type = damage.empty() ? "store.mended" : "store.damaged";
    event.detail = damage.empty()
                       ? "a fresh snapshot makes up for it: " + state_damage_
                       : damage + "; the state itself is good, and a fresh snapshot of it is being taken";
    if (!damage.empty()) meters_->state_damages.add();
    state_damage_ = damage;
    emit(std::move(event));
}

// Goes back to where the journal ends. Nothing is known of the hardware yet: every switch is in doubt.
Result<> Core::load() {
    Result<StoreContents> contents = store_->load();
    if (!contents) return std::unexpected(std::move(contents.error()).with_context("load the journal"));
    bool restored = false;
    for (const HostRecord& record : contents->hosts) {
        const auto agent = agents_.find(record.host);
        if (agent == agents_.end()) continue;
        agent->second->next_revision = record.revision;
        restored = restored || record.revision >= kRevisionLeap;
        inventory_.host(record.host)->revision = record.revision;
    }
    for (QuarantineRecord& record : contents->quarantine) quarantine_[record.serial] = std::move(record);
    for (IdempotencyRecord& record : contents->idempotency) {
        key_order_.push_back(record.key);
        keys_[record.key] = Key{record.body_hash, std::move(record.answer)};
    }
    next_event_ = contents->last_event + 1;
    published_event_ = contents->last_event;
    oldest_event_ = contents->first_event;
    for (Composition& c : contents->compositions) {
        journal_time_ = std::max(journal_time_, c.updated);
        if (!is_end(c.state)) {
            if (Result<> known = check_configured(c); !known) return known;
            if (Result<> claimed = inventory_.claim(c); !claimed)
                return fail(ErrorCode::kProtocol,
                            fmt::format("the journal contradicts itself: {}", claimed.error().message));
        }
        if (c.state == CompositionState::kOnline) c.reason.reset();  // older versions kept it
        // The time in which no manager ran is not its overhead.
        if (c.phase_started != Time{}) c.phase_waited_ms += std::max(0.0, to_ms(now() - c.updated));
        next_sequence_ = std::max(next_sequence_, c.sequence + 1);
        const auto entry = std::make_shared<Entry>(executor_, std::move(c));
        entry->waited_before_ms = entry->c.phase_waited_ms;
        add_entry(entry);
        // Since the backup was made, others may have got what was lost then.
        if (restored) continue;
        for (const Part& part : entry->c.parts) note_lost(entry->c, part);
    }
    return {};
}

Result<> Core::check_configured(const Composition& c) const {
    for (const Part& part : c.parts)
        if (!agents_.contains(c.host) || (!is_end(part.state) && !switches_.contains(part.where.switch_id)))
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("composition {} is not over, but its host {} or its switch {} is not in "
                                    "the configuration any more: put them back, release it, then remove them",
                                    c.id.value, c.host.value, part.where.switch_id.value));
    return {};
}

void Core::start() {
    for (const auto& [id, state] : switches_) {
        listen_to(id);
        spawn(run_switch(id));
        spawn(run_health(id));
    }
    spawn(run_deadlines());
    spawn(run_flaps());
    spawn(run_quarantine());
    for (const auto& [id, entry] : entries_) {
        if (is_end(entry->c.state)) continue;
        watch_deadlines(entry, Composition{}, std::max(now(), journal_time_));
        kick(entry);
    }
}

void Core::abandon() {
    stopping_ = true;
    stop_.notify_all();
    drained_.notify_all();
    key_done_.notify_all();
    deadlines_changed_.notify_all();
    flaps_changed_.notify_all();
    event_added_.notify_all();
    for (const auto& [id, state] : switches_) {
        state->read_now.notify_all();
        state->devices_added.notify_all();
        state->client->close();
    }
    for (const auto& [id, agent] : agents_) agent->changed.notify_all();
    for (const auto& [id, entry] : entries_) {
        for (const auto& [number, job] : entry->jobs) job->kick.notify_all();
        entry->changed.notify_all();
    }
}

Async<> Core::stop() {
    const std::shared_ptr<Core> self = shared_from_this();
    abandon();
    while (running_ > 0) co_await drained_.wait_until(SteadyTime::max());
}

// Runs it in the background; it may use the Core to its end.
void Core::spawn(Async<> coroutine) {
    ++running_;
    boost::asio::co_spawn(
        executor_, std::move(coroutine), [self = shared_from_this()](std::exception_ptr failure) {
            --self->running_;
            if (self->running_ == 0) self->drained_.notify_all();
            if (!failure) return;
            try {
                std::rethrow_exception(failure);
            } catch (const std::exception& e) {
                log::error("background work of the fabric manager ended early", {{"error", e.what()}});
            }
        });
}

Async<> Core::pause_us(std::chrono::microseconds duration) {
    if (stopping_) co_return;
    co_await stop_.wait_until(std::chrono::steady_clock::now() + duration);
}

void Core::point(std::string_view what, std::string_view detail) const {
    if (config_.sync_point) config_.sync_point(fmt::format("{}:{}", what, detail));
}

// --- Metrics ---

void Core::set_up_metrics() {
    meters_ = std::make_shared<Meters>(metrics_);
    metrics_.before_render([weak = weak_from_this()] {
        const std::shared_ptr<Core> self = weak.lock();
        if (!self) return;
        const Pool pool = self->inventory_.pool();
        Meters& meters = *self->meters_;
        meters.capacity.set(static_cast<double>(pool.capacity.value));
        meters.free.set(static_cast<double>(pool.free.value));
        meters.composed.set(static_cast<double>(pool.composed.value));
        meters.quarantined.set(static_cast<double>(pool.quarantined.value));
        meters.stranded.set(static_cast<double>(pool.stranded.value));
        meters.note(self->metrics_, fragmentation(self->inventory_));
        meters.active.set(static_cast<double>(self->entries_.size() - self->ended_.size()));
        for (const char* kind : {"device", "port", "switch", "host"})
            self->metrics_
                .gauge("memtide_fm_flapping", "What is held because it comes and goes", {{"kind", kind}})
                .set(static_cast<double>(std::ranges::count_if(
                    self->flapping_, [&](const auto& one) { return kind_of(one.second) == kind; })));
        for (const HealthLevel level : {HealthLevel::kWarning, HealthLevel::kCritical})
            self->metrics_
                .gauge("memtide_fm_devices_unhealthy", "Devices that say that not all is well",
                       {{"verdict", std::string(to_string(level))}})
                .set(static_cast<double>(
                    std::ranges::count_if(self->inventory_.devices(), [&](const auto& one) {
                        const Device& device = one.second;
                        return device.present && device.health && verdict(*device.health) == level;
                    })));
        for (const auto& [id, one] : self->inventory_.switches())
            self->metrics_.gauge("memtide_fm_switch_up", "1 when the switch answers", {{"switch", id.value}})
                .set(one.up ? 1 : 0);
    });
}

}  // namespace memtide::fm
