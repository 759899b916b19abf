#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/metrics/registry.h"
#include "fabric-manager/engine/flap_damper.h"
#include "fabric-manager/model/agent.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/event.h"
#include "fabric-manager/model/fabric.h"
#include "fabric-manager/model/problem.h"
#include "fabric-manager/model/tenant.h"
#include "fabric-manager/model/time.h"

namespace memtide::fm {

class Core;
class FmApiClient;
class Inventory;
class Store;

using FmApiClients = std::map<SwitchId, std::shared_ptr<FmApiClient>>;

// Durations of the `timing` section of the configuration.
struct ManagerTiming {
    Milliseconds drain_deadline{60'000};        // what an agent gets to move pages away
    Milliseconds exchange_deadline{1'800'000};  // what comes in exchange is online by then
    Milliseconds switch_poll{5'000};            // how often a healthy switch is read again
    Milliseconds retry_min{50};                 // first pause after a failed step; doubles up to retry_max
    Milliseconds retry_max{5'000};
    Milliseconds background_poll_min{1};  // pause between 0002 polls; grows up to background_poll_max
    Milliseconds background_poll_max{100};
    Milliseconds background_timeout{600'000};  // a background operation that takes longer is given up
    Milliseconds quarantine_retry{600'000};    // how often the erase of a quarantined LD is tried again
    Milliseconds gone_after{500};      // memory that a switch does not show for so long is taken for gone
    Milliseconds health_poll{30'000};  // how often a device is asked for its health
    std::size_t readers = 16;          // switches that are read at a time, at most
};

struct ManagerSwitch {
    SwitchId id;
    std::string address;  // shown to people; the connection is the FmApiClient's
};
struct ManagerHost {
    HostId id;
    std::vector<HostAttachment> attach;
};

struct ManagerConfig {
    std::vector<ManagerSwitch> switches;
    std::vector<ManagerHost> hosts;
    ManagerTiming timing;
    FlapLimits flapping;
    // Memory of the pool that is kept free for those whose placement may use it: the larger of the two.
    Bytes reserve;
    std::uint8_t reserve_percent = 0;
    PlacementDefaults placement_defaults{};
    Tenants tenants;
    int erase_attempts = 3;           // then the LD is quarantined
    VerifyErased verify_erased;       // by the hosts, before they use memory
    std::size_t keep_ended = 10'000;  // ended compositions that stay readable
    std::size_t keep_events = 100'000;
    std::size_t keep_idempotency = 20'000;  // keys; the oldest are forgotten first
    // Called at every journal write and every effect with the point's name ("journal:Binding",
    // "journaled:Binding", "effect:bind", "effected:bind"); crash tests end the process in it.
    std::function<void(std::string_view point)> sync_point;
    // The wall clock; the system's when there is none here.
    std::function<Time()> wall_clock;
};

// Makes a POST repeatable: the same key with the same body hash is answered as the first time.
struct IdempotencyKey {
    std::string key;
    std::string body_hash;
};

// Says whether a change may be made, seeing the composition's revision right before it.
using Precondition = std::function<bool(std::uint64_t revision)>;

struct Created {
    Composition composition;  // as it was when it was created
    bool replayed = false;    // an idempotent repetition
};

// Where a composition would go, and what kept which device out of the choice.
struct PlannedComposition {
    Composition composition;
    std::vector<Exclusion> excluded;
};

struct CompositionQuery {
    std::uint64_t after = 0;  // sequence of the last one on the page before
    std::size_t limit = 100;
    std::optional<HostId> host;
    std::optional<CompositionState> state;
    std::optional<std::string> tenant;
    std::optional<SwitchId> switch_id;  // through which it is bound
    std::optional<DeviceId> device;     // whose memory it is
    // A label it must have, and the value when there is one here.
    std::optional<std::pair<std::string, std::optional<std::string>>> label;
};
struct CompositionPage {
    std::vector<Composition> items;     // in order of creation
    std::optional<std::uint64_t> next;  // `after` of the next page; a page may be short, even empty
};

// What is known of a composition's life beside the composition itself.
struct History {
    Composition composition;    // its steps with their times are always complete
    std::vector<Event> events;  // about it, oldest first
    bool more = false;          // there are later ones
    bool complete = false;      // none of them has been forgotten (`limits: events`)
};

// Says whether a change may be made, seeing the composition's revision right before it.
using Precondition = std::function<bool(std::uint64_t revision)>;

struct Readiness {
    bool ready = false;                // requests are answered from an inventory that has been read
    std::vector<std::string> reasons;  // why not, or what is degraded ("switch switch0 is down: ...")
};

// The fabric manager without its REST interface. Not thread safe: everything runs on `executor`, which must
// run its handlers one at a time (an io_context run by one thread, or a strand). Awaitables that wait end
// with an error of kind kCancelled when their coroutine is cancelled or the manager stops.
//
// What an awaitable reported as done is on the disk.
class Manager {
  public:
    // `clients` has one client for each configured switch. The store is already open (open_sqlite_store()).
    // Fails with kInvalidArgument when hosts or clients do not match the switches, with the store's error
    // when its contents cannot be read.
    static Result<std::unique_ptr<Manager>> open(boost::asio::any_io_executor executor, ManagerConfig config,
                                                 std::unique_ptr<Store> store, FmApiClients clients,
                                                 metrics::Registry& metrics);
    ~Manager();
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    // Starts to read the switches and to go on with what the journal says is unfinished.
    void start();
    // Ends all background work and all waiting calls; journaled work goes on after the next start.
    boost::asio::awaitable<void> stop();

    // --- Compositions ---
    // Problems: unknown-host, size-zero, size-not-multiple, the refusals of placement and of check_tenant(),
    // idempotency-conflict, storage-full, storage-read-only, storage-failed, internal-error.
    boost::asio::awaitable<Outcome<Created>> create(CompositionRequest request,
                                                    std::optional<IdempotencyKey> key);
    // The same without doing anything: what the composition would be (a dry run).
    [[nodiscard]] Outcome<PlannedComposition> plan(CompositionRequest request) const;
    // What create() would answer because the key was used before, once that is known; nullopt when it was
    // not, and it is not used by this. Problem: idempotency-conflict.
    boost::asio::awaitable<std::optional<Outcome<Created>>> look_up(IdempotencyKey key);
    // Grows, shrinks, renews or relabels it; only when the precondition holds; no other
    // change comes in between. What it
    // gives back is drained first. Problems: unknown-composition, composition-ended, precondition-failed,
    // not-online, cannot-shrink, the refusals of placement, storage-full, internal-error.
    boost::asio::awaitable<Outcome<Composition>> change(CompositionId id, CompositionChangeRequest request,
                                                        Precondition precondition = {});
    // Asks for the release; the composition then goes on by itself. Asking again is fine and may add force.
    // With a precondition nothing happens unless it holds; no other change comes in between.
    // Problems: unknown-composition, composition-ended, precondition-failed, the storage-* of create(),
    // internal-error.
    boost::asio::awaitable<Outcome<Composition>> release(CompositionId id, bool force,
                                                         Precondition precondition = {});
    [[nodiscard]] Outcome<Composition> get(const CompositionId& id) const;
    [[nodiscard]] CompositionPage list(const CompositionQuery& query) const;
    // Waits until the composition is in `state`, has ended, or the timeout has passed; answers it as it is
    // then.
    boost::asio::awaitable<Outcome<Composition>> wait(CompositionId id, CompositionState state,
                                                      Milliseconds timeout);
    // Takes an LD out of quarantine whatever put it there: its device was repaired, or the host that found it
    // not erased was wrong. It is erased before it is bound again. Problems: not-quarantined, the storage-*
    // of create().
    boost::asio::awaitable<Outcome<>> lift_quarantine(SerialNumber ld);
    // Its events with ids above `after`, at most `limit`. Problems: unknown-composition, internal-error.
    boost::asio::awaitable<Outcome<History>> history(CompositionId id, std::uint64_t after,
                                                     std::size_t limit);

    // --- Inventory, as last seen ---
    // All of it, without a copy; changes whenever the calling coroutine waits for something.
    [[nodiscard]] const Inventory& inventory() const;
    // How much the host has, in compositions that have not ended.
    [[nodiscard]] Bytes composed(const HostId& host) const;
    [[nodiscard]] Pool pool() const;
    [[nodiscard]] std::vector<Host> hosts() const;
    [[nodiscard]] std::vector<Switch> switches() const;
    [[nodiscard]] std::vector<Device> devices() const;
    [[nodiscard]] Topology topology() const;
    // Those of the configuration, by name.
    [[nodiscard]] std::vector<TenantStatus> tenants() const;
    [[nodiscard]] Readiness readiness() const;

    // --- Agent channel ---
    // Answers at once when the revision is not `after` (or there is no `after`), else when it changes or at
    // the timeout. Problem: unknown-host.
    boost::asio::awaitable<Outcome<DesiredState>> desired(HostId host, std::optional<std::uint64_t> after,
                                                          Milliseconds timeout);
    // Problems: unknown-host, not-your-composition (nothing is applied), invalid-request, storage-full.
    boost::asio::awaitable<Outcome<>> observed(HostId host, ObservedReport report);

    // --- Events ---
    // Events with ids above `after`, oldest first, at most `limit`; waits for one until the timeout (then
    // empty). A subscriber calls it in a loop with the last id it got; nothing is queued for slow ones.
    boost::asio::awaitable<Outcome<std::vector<Event>>> events(std::uint64_t after, std::size_t limit,
                                                               Milliseconds timeout);
    // Where a subscriber that wants only new events starts.
    [[nodiscard]] std::uint64_t last_event() const;
    // The oldest that is still kept: who has seen none since before it has missed something.
    [[nodiscard]] std::uint64_t oldest_event() const;

  private:
    explicit Manager(std::shared_ptr<Core> core);
    std::shared_ptr<Core> core_;  // shared with its own coroutines, which may outlive the facade
};

}  // namespace memtide::fm
