#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/fmapi/commands/events.h"
#include "common/fmapi/opcode.h"
#include "fabric-manager/engine/async.h"
#include "fabric-manager/engine/flap_damper.h"
#include "fabric-manager/engine/manager.h"
#include "fabric-manager/engine/next_step.h"
#include "fabric-manager/fmapi/client.h"
#include "fabric-manager/fmapi/turn_queue.h"
#include "fabric-manager/model/inventory.h"
#include "fabric-manager/placement/placement.h"
#include "fabric-manager/store/store.h"

// Inside of the engine; manager.h is its face. One Core holds what the manager knows; its parts:
//   journal.cpp   every change of a composition: durable first, then visible
//   job.cpp       the loop that takes one part of a composition from step to step
//   views.cpp     what it looks at: the switch's and the agent's side of a part
//   effect_steps.cpp  its steps that have an effect on a switch
//   carve.cpp     dividing a device's memory among its LDs, and devices that refuse to
//   failures.cpp  what a part that fails means for its composition
//   not_erased.cpp what a host that finds memory not erased means for its composition
//   deadlines.cpp what happens by the clock
//   flaps.cpp     what comes and goes all the time
//   moves.cpp     devices that turn up at another port
//   health.cpp    what devices say of their health
//   effects.cpp   what a step does to a switch
//   dynamic_capacity.cpp  what is asked of dynamic capacity devices
//   fabric.cpp    reading switches
//   adopt.cpp     what is found bound, and what lost parts left bound
//   records.cpp   what switches tell of their own accord
//   requests.cpp  what clients ask for
//   exchange.cpp  shrinks for which other memory has to be online first
//   resize.cpp    growing and shrinking, leases, labels
//   agents.cpp    desired and observed states of hosts
//   events.cpp    events and their subscribers
//   history.cpp   events out of the store
namespace memtide::fm {

struct FabricReading;

template <typename T = void>
using Async = boost::asio::awaitable<T>;

// What this process remembers about the job of one part.
struct PartJob {
    explicit PartJob(boost::asio::any_io_executor executor) : kick(std::move(executor)) {}

    Signal kick;  // when it pauses before a retry
    bool running = false;
    bool look_again = false;  // something changed while it ran
    int failures = 0;         // of the step at hand, in a row
    std::string last_trouble;
    double waited_ms = 0;                  // in this phase of the composition
    std::optional<SteadyTime> agent_wait;  // since when the agent is waited for
    bool overdue_told = false;
    std::optional<SteadyTime> missed;         // since when its memory seems to be gone
    std::optional<std::string> boot_at_bind;  // of the host, when it got the memory
};

// A composition and what this process remembers about it.
struct Entry {
    Entry(boost::asio::any_io_executor executor, Composition composition)
        : c(std::move(composition)), journal(executor), changed(executor), executor_(executor) {}

    Composition c;       // as it is on the disk, but for waiting_for and holders
    AsyncMutex journal;  // one journal entry at a time
    Signal changed;      // for long polls
    std::map<std::uint32_t, std::unique_ptr<PartJob>> jobs;
    double waited_before_ms = 0;  // of this phase, before this process
    bool healing = false;         // a lost part is being replaced
    std::string heal_trouble;     // why it could not be, as last told

    PartJob& job(std::uint32_t number) {
        std::unique_ptr<PartJob>& job = jobs[number];
        if (!job) job = std::make_unique<PartJob>(executor_);
        return *job;
    }

  private:
    boost::asio::any_io_executor executor_;
};
using EntryPtr = std::shared_ptr<Entry>;

// A part of an entry, and its job. A part with a running job stays in its composition.
struct PartRef {
    EntryPtr entry;
    std::uint32_t number = 0;
    [[nodiscard]] Part& part() const { return *entry->c.part(number); }
    [[nodiscard]] PartJob& job() const { return entry->job(number); }
    [[nodiscard]] SwitchId switch_id() const { return part().where.switch_id; }
};

// A change of a composition on its way to the disk.
struct Draft {
    Composition c;
    std::uint32_t number = 0;                  // of the part that the change is about
    std::optional<std::uint64_t> erased_over;  // its memory was erased, over this connection to the switch
    std::optional<QuarantineRecord> quarantine;
    std::optional<IdempotencyRecord> idempotency;
    std::string detail;  // of the state event
    std::string code;
    std::vector<Event> events;  // their time is that of the change

    [[nodiscard]] Part& part() { return *c.part(number); }
};

// An event of that type about a part of it.
Event event_about(const Draft& draft, const Part& part, std::string type);

// Edits a draft; false: there is nothing to do after all. Made into a named variable before it is handed to a
// coroutine that is awaited: gcc 12 destroys a lambda twice that is converted inside a co_await expression.
using Change = std::function<bool(Draft&)>;

// What this process knows of a host's agent.
struct AgentState {
    explicit AgentState(boost::asio::any_io_executor executor) : changed(executor) {}
    bool reported = false;
    std::string boot_id;
    std::uint64_t revision_seen = 0;
    std::map<RegionId, ObservedRegion> regions;
    std::set<CompositionId> active;   // compositions of the host that have not ended
    std::uint64_t next_revision = 0;  // of the desired state; the published one is Host::revision
    Signal changed;                   // of the published revision
    bool to_be_told = false;          // in a moment, that `changed` is so
};

// A device that cannot be used, and why, as an event says it.
struct Unusable {
    std::string code;
    std::string why;
    friend bool operator==(const Unusable&, const Unusable&) = default;
};

struct SwitchState {
    explicit SwitchState(boost::asio::any_io_executor executor)
        : operation(executor), read_now(executor), devices_added(executor) {}
    std::shared_ptr<FmApiClient> client;
    AsyncMutex operation;  // one background operation, or one reading, at a time
    Signal read_now;
    bool doubtful = true;      // what is known of it may be wrong until it has been read
    bool look_wanted = false;  // somebody doubts it, and does not want to wait for the next poll
    bool tried = false;        // was asked at least once
    // The connection over which it was read last. What was erased before it is not known to be clean: the
    // switch may have been restarted, or served another manager.
    std::uint64_t connection = 0;
    bool failed = false;      // the last time it was asked
    SteadyTime read_began{};  // of the last reading
    bool notified = false;    // it says that it has something to tell
    SteadyTime heeded{};      // when that was followed last
    int heeded_in_a_row = 0;
    // Its event records, over the present connection.
    struct Records {
        std::uint64_t connection = 0;  // over which it was asked
        bool supported = false;
        bool told_trouble = false;
        bool hung_up = false;      // when it was asked; counts once it answers again
        int lost_connections = 0;  // in a row, for having been asked
    } records;
    std::set<PartId> active;                    // parts at it that have not ended
    std::map<std::uint8_t, Unusable> unusable;  // devices by port, as last told
    struct HealthWatch {
        SteadyTime due{};  // when it is asked next
        int failures = 0;  // in a row
    };
    std::map<DeviceId, HealthWatch> health;  // of devices at their port here
    Signal devices_added;
    std::map<std::uint8_t, int> unanswered_heads;  // as read_switch() counts them
};

class Core : public std::enable_shared_from_this<Core> {
  public:
    Core(boost::asio::any_io_executor executor, ManagerConfig config, std::unique_ptr<Store> store,
         metrics::Registry& metrics);

    Result<> set_up(FmApiClients clients);
    void start();
    Async<> stop();
    // Without waiting: for a Manager that is destroyed.
    void abandon();
    void close_store() { store_.reset(); }

    // requests.cpp
    Async<Outcome<Created>> create(CompositionRequest request, std::optional<IdempotencyKey> key);
    Outcome<PlannedComposition> plan(CompositionRequest request);
    Async<std::optional<Outcome<Created>>> look_up(IdempotencyKey key);
    Async<Outcome<Composition>> change(CompositionId id, CompositionChangeRequest request,
                                       Precondition precondition);
    Async<Outcome<Composition>> release(CompositionId id, bool force, Precondition precondition);
    Outcome<Composition> get(const CompositionId& id) const;
    CompositionPage list(const CompositionQuery& query) const;
    std::vector<TenantStatus> tenants() const;
    Async<Outcome<Composition>> wait(CompositionId id, CompositionState state, Milliseconds timeout);

    // not_erased.cpp
    Async<Outcome<>> lift_quarantine(SerialNumber serial);

    // history.cpp
    Async<Outcome<History>> history(CompositionId id, std::uint64_t after, std::size_t limit);

    // fabric.cpp
    const Inventory& inventory() const { return inventory_; }
    std::vector<Host> hosts() const;
    Bytes composed(const HostId& host) const;
    Readiness readiness() const;

    // agents.cpp
    Async<Outcome<DesiredState>> desired(HostId host, std::optional<std::uint64_t> after,
                                         Milliseconds timeout);
    Outcome<> observed(const HostId& host, ObservedReport report);
    Outcome<> check_report(const HostId& host, const ObservedReport& report);

    // events.cpp
    Async<Outcome<std::vector<Event>>> events(std::uint64_t after, std::size_t limit, Milliseconds timeout);
    std::uint64_t last_event() const { return published_event_; }
    std::uint64_t oldest_event() const { return oldest_event_; }

  private:
    // --- journal.cpp ---
    // Lets `change` edit a copy, makes it durable, then shows it. `change` answers false when there is
    // nothing to do after all. Errors are the store's; then nothing is shown.
    Async<Result<>> journal(EntryPtr entry, Change change, std::uint32_t number = 0);
    Async<Result<>> apply(Mutation mutation);
    // A new revision of a host's desired state, 0 when it has none.
    struct HostNews {
        std::uint64_t revision = 0;
        bool to_do = false;  // not just regions that it has nothing to do with any more
    };
    void publish(const EntryPtr& entry, Draft draft, HostNews host_news);
    void publish_parts(const EntryPtr& entry, const Composition& before);
    void add_entry(const EntryPtr& entry);
    HostNews tell_agent(const Composition& before, Draft& draft, Mutation& mutation);
    void tell_agent_later(const HostId& host);
    void account(const EntryPtr& entry, Composition& c) const;
    void end_of_life(const EntryPtr& entry);
    void end_of_part(const Composition& c, const Part& part);
    void forget_ended();
    void note_memory(const Draft& draft);

    // --- job.cpp ---
    enum class Progress { kAgain, kIdle, kRetry };
    void kick(const PartRef& ref);
    void kick(const EntryPtr& entry);
    void kick_others(const EntryPtr& entry, std::uint32_t number);
    void kick(const std::set<CompositionId>& ids);
    void kick(const std::set<PartId>& ids);
    Async<> run_job(PartRef ref);
    Async<Progress> perform(PartRef ref, Action action);
    Async<Progress> advance(PartRef ref, Change change);
    Async<Progress> nothing_to_do();
    Progress refused_for_now(const PartRef& ref, const Error& error);
    void idle(const PartRef& ref, const Action& action);
    void trouble(const PartRef& ref, const Error& error);
    Milliseconds backoff(int failures) const;
    Action next(const PartRef& ref) const;
    Action look(const PartRef& ref);
    void watch_missing(const PartRef& ref, const SwitchView& view);
    Async<> read_again_later(SwitchId id);

    // --- views.cpp ---
    static CompositionView composition_view(const PartRef& ref);
    SwitchView switch_view(const PartRef& ref) const;
    AgentView agent_view(const PartRef& ref) const;

    // --- effect_steps.cpp ---
    Async<Progress> bind_step(PartRef ref);
    Async<Progress> unbind_step(PartRef ref);
    Async<Progress> erase_step(PartRef ref, ActionKind kind);
    Async<Progress> await_background_step(PartRef ref);
    Async<Progress> offer_step(PartRef ref);
    Async<Progress> see_accepted_step(PartRef ref);
    Async<AsyncMutex::Lock> turn_at_switch(PartRef ref);

    // --- carve.cpp ---
    Async<Progress> allocate_step(PartRef ref, ActionKind kind);
    bool is_untouched(const Part& part) const;
    Async<Progress> carve_refused(PartRef ref, Error error);
    bool carve_wider(Draft& draft, const Error& error);
    std::vector<PartId> carve_elsewhere(Draft& draft, const Error& error);

    // --- failures.cpp ---
    Async<Progress> fail_step(PartRef ref, Reason reason);
    Async<Progress> erase_failed(PartRef ref, Error error);
    void note_failure(Draft& draft) const;
    void give_back(Composition& c, Part& part) const;

    // --- not_erased.cpp ---
    Async<Progress> not_erased_step(PartRef ref);
    std::vector<PartId> replace_not_erased(Draft& draft, Bytes missing);
    Async<Outcome<>> do_lift_quarantine(SerialNumber serial);

    // --- deadlines.cpp ---
    void watch_deadlines(const EntryPtr& entry, const Composition& before, std::optional<Time> wall = {});
    Async<> run_deadlines();
    void watch_clock(Time& wall, SteadyTime& steady);
    Async<> on_deadline(EntryPtr entry, Time deadline);
    void tell_overdue(const PartRef& ref);

    // --- effects.cpp ---
    Async<Result<>> bind(PartRef ref);
    Async<Result<>> unbind(PartRef ref);
    static Target target_of(const LdAddress& memory, std::uint8_t port);
    Async<Result<>> erase(LdAddress memory, SwitchId switch_id, std::uint8_t port,
                          std::optional<PartRef> ref);
    Async<Result<>> sanitize(SwitchId switch_id, Target target, std::optional<PartRef> ref);
    [[nodiscard]] bool is_dynamic(const DeviceId& device) const;
    Async<Result<SerialNumber>> set_capacity(PartRef ref, Bytes size);
    Async<Result<SerialNumber>> set_sizes(PartRef ref, std::vector<LdSize> sizes);
    // With a part, the time is counted as waiting.
    Async<Result<>> follow_background(SwitchId switch_id, Target target, fmapi::Opcode operation,
                                      std::optional<PartRef> ref);
    Async<Result<>> look_at_vcs(const VppbAddress& where);

    // --- fabric.cpp ---
    Async<> run_switch(SwitchId id);
    Async<Result<>> read_and_apply(SwitchId id);
    void apply_reading(const SwitchId& id, const FabricReading& reading);
    // Answers the ports whose devices cannot be used, and why.
    std::map<std::uint8_t, Unusable> apply_devices(const SwitchId& id, const FabricReading& reading);
    void restore_quarantine(const DeviceId& device);
    bool is_connected_anew(const SwitchId& id) const;
    void set_up_or_down(const SwitchId& id, const Result<>& read);
    void doubt(const SwitchId& id);
    Async<> run_quarantine();
    Async<> retry_quarantined(LdAddress address);

    // --- adopt.cpp ---
    // A part whose memory is gone, and where it was bound.
    struct LostPart {
        CompositionId composition;
        HostId host;
        std::optional<std::string> tenant;
        VppbAddress where;
    };
    // A composition for what is found bound, and why, for people.
    struct Adoption {
        Composition c;
        std::string detail;
    };
    void note_lost(const Composition& c, const Part& part);
    const LostPart* lost_part(const LogicalDevice& ld, const HostId& host, const VppbAddress& where) const;
    void forget_found(const SwitchId& id);
    Async<> adopt(SwitchId id);
    std::optional<Adoption> unexplained(const SwitchId& id, const Vcs& vcs, const Vppb& vppb) const;

    // --- health.cpp ---
    Async<> run_health(SwitchId id);
    Async<SteadyTime> watch_health(SwitchId id);
    Async<Result<DeviceHealth>> ask_for_health(SwitchId id, DeviceId name);
    void ask_for_health_soon(const SwitchId& id, const DeviceId& name);
    void note_health(const DeviceId& name, const DeviceHealth& health);

    // --- records.cpp ---
    struct Findings {
        bool found = false;  // something that was not known
        std::size_t told = 0;
        std::size_t untold = 0;
    };
    void listen_to(const SwitchId& id);
    Async<> await_look(SwitchId id, Milliseconds pause);
    Async<bool> has_records(SwitchId id);
    void note_records_answer(const SwitchId& id, const std::optional<Error>& error);
    Async<bool> collect_records(SwitchId id);
    Async<bool> collect_log(SwitchId id, fmapi::EventLog log, Findings& findings);
    void tell_record(const SwitchId& id, const fmapi::EventRecord& record, fmapi::EventLog log,
                     Findings& findings);
    void tell_records_trouble(const SwitchId& id, std::string what);

    // --- requests.cpp ---
    Async<Outcome<Created>> do_create(CompositionRequest request, std::optional<IdempotencyKey> key);
    Async<Outcome<Composition>> do_release(EntryPtr entry, bool force, Precondition precondition);
    Async<std::optional<Outcome<Created>>> replay(const IdempotencyKey& key);
    PlacementRequest with_defaults(CompositionRequest& request) const;
    void bind_at_once(const EntryPtr& entry, Draft& draft) const;
    PlacementRequest placement_request(const CompositionRequest& request) const;
    PlacementRequest request_for_more(const Composition& c, Bytes missing) const;
    Composition draft_composition(CompositionRequest request, Plan plan, Time began);
    void add_parts(Composition& c, Plan plan, Time began) const;
    void begin_drain(Composition& c, Part& part) const;
    CompositionId new_id();
    EntryPtr find(const CompositionId& id) const;
    std::vector<std::string> trim_keys();

    // --- resize.cpp ---
    Async<Outcome<Composition>> do_change(EntryPtr entry, CompositionChangeRequest request,
                                          Precondition precondition);
    Outcome<Composition> resized(const Composition& before, Bytes size);
    void renew(Composition& c, std::chrono::seconds ttl) const;
    static void forget_ended_parts(const EntryPtr& entry, Composition& c);

    // --- exchange.cpp ---
    void begin_exchange(Composition& c, Bytes size_before, std::vector<std::uint32_t> leaving) const;
    // Ends it once what stays is online, or when it has become pointless. For every entry of the journal.
    void settle_exchange(Composition& c) const;
    void end_exchange(Composition& c, std::string_view how) const;
    void undo_exchange(Draft& draft, const Reason& why) const;
    Async<Progress> online_refused_step(PartRef ref, Reason reason);
    Async<> exchange_overdue(EntryPtr entry, Time deadline);

    // --- heal.cpp ---
    // Looks for memory in place of what compositions have lost, where their policy says so.
    void heal_all();
    // Parts in the place of others, and where they are, as words.
    struct Substitute {
        std::vector<PartId> parts;  // claimed; none when they could not be
        std::string where;
    };
    Substitute add_substitute(Composition& c, Plan plan, bool replacement);
    // carve.cpp
    Substitute replace_in_region(Draft& draft, const Part& failing);
    Substitute replace_region(Draft& draft, const Part& failing, std::string& refused);
    Async<> heal(EntryPtr entry);

    // --- flaps.cpp ---
    // A host; or a device; or a switch, or with `port` one of its ports.
    struct Flapper {
        std::optional<HostId> host{};
        std::optional<SwitchId> switch_id{};
        std::optional<std::uint8_t> port{};
        std::optional<DeviceId> device{};
    };
    static std::string key_of(const Flapper& one);
    static std::string_view kind_of(const Flapper& one);
    const Device* last_device_at(const SwitchId& id, std::uint8_t port) const;
    bool is_held(const Flapper& one) const;
    Event flap_event(Flapper one, std::string_view what, std::string detail) const;
    void tell_change(const Flapper& one, Event event);
    void keep_away(const Flapper& one);
    Async<> run_flaps();

    // --- moves.cpp ---
    struct Place {
        SwitchId switch_id;
        std::uint8_t port = 0;
    };
    void take_away(const SwitchId& id, const FabricReading& reading);
    bool may_have_moved(const SwitchId& id, const DeviceReading& seen);
    void note_move(const DeviceId& device, const Place& from);
    std::string moved_to(const Part& part) const;
    Async<> follow_moves(SwitchId id);
    Async<> follow(PartRef ref);
    bool lead_to(Part& part, const HostId& host) const;

    // --- events.cpp ---
    // Durable and visible soon; for events that come without a change of a composition.
    void emit(Event event);
    void show_events(const std::vector<Event>& events);
    void trim_events(Mutation& mutation);
    static Event state_event(const Draft& draft);
    static void add_state_events(const Composition& before, const Draft& draft, Mutation& mutation);
    // --- history.cpp ---
    Async<Result<std::vector<Event>>> read_events(EventQuery query);

    // --- core.cpp ---
    void spawn(Async<> coroutine);
    // Ends early when the manager stops.
    Async<> pause_us(std::chrono::microseconds duration);
    Result<> load();
    Result<> check_configured(const Composition& c) const;
    void set_up_metrics();
    void watch_state();
    void note_state_damage(const std::string& damage);
    void point(std::string_view what, std::string_view detail) const;
    Time now() const { return config_.wall_clock ? config_.wall_clock() : std::chrono::system_clock::now(); }

    boost::asio::any_io_executor executor_;
    ManagerConfig config_;
    std::unique_ptr<Store> store_;
    std::string state_damage_;  // of what the state would be recovered from
    metrics::Registry& metrics_;
    bool stopping_ = false;
    TenantLedger tenants_;
    int running_ = 0;  // coroutines of spawn()
    Signal stop_;      // ends every pause
    Signal drained_;

    Inventory inventory_;
    std::map<SwitchId, std::unique_ptr<SwitchState>> switches_;
    std::map<HostId, std::unique_ptr<AgentState>> agents_;
    std::unordered_map<CompositionId, EntryPtr> entries_;
    std::map<std::uint64_t, EntryPtr> by_sequence_;
    std::deque<CompositionId> ended_;
    std::uint64_t next_sequence_ = 1;
    std::set<CompositionId> degraded_;  // those that want a part replaced
    std::map<SerialNumber, QuarantineRecord> quarantine_;
    AsyncMutex lifting_;                          // of quarantines, one at a time
    std::map<DeviceId, std::uint64_t> carvings_;  // counts Set LD Allocations: memory may have moved

    struct Key {
        std::string body_hash;
        std::optional<Composition> answer;  // nullopt while the first request is under way
    };
    std::unordered_map<std::string, Key> keys_;
    std::deque<std::string> key_order_;
    Signal key_done_;

    struct Deadline {
        CompositionId composition;
        Time time;  // as the composition has it
    };
    std::multimap<SteadyTime, Deadline> deadlines_;
    Signal deadlines_changed_;
    Time journal_time_{};  // of the last change in the journal that this process began with

    FlapDamper flaps_;
    std::map<std::string, Flapper> flapping_;  // those that are held, by key
    Signal flaps_changed_;

    std::map<SerialNumber, LostPart> lost_;  // by the LD's, until its device is seen again

    std::map<DeviceId, Place> moves_;  // devices that moved, and from where, until they were followed
    struct Claimant {
        SwitchId switch_id;  // shows the device, which another switch showed last
        SteadyTime since;
    };
    std::map<DeviceId, Claimant> claimants_;

    TurnQueue readers_;   // of switches that answered last, or were not asked yet
    TurnQueue retriers_;  // of the others, which may take long

    std::uint64_t next_event_ = 1;
    std::uint64_t published_event_ = 0;
    std::uint64_t oldest_event_ = 0;
    std::deque<Event> recent_;
    Signal event_added_;

    std::mt19937_64 random_;
    struct Meters;
    std::shared_ptr<Meters> meters_;
};

}  // namespace memtide::fm
