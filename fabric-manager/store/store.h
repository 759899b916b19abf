#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/event.h"

namespace memtide::fm {

// Memory that could not be erased: it stays out of the pool until it could be, or, when a host found it not
// erased although its device had said so, until an operator says so. That memory *is* erased is never stored:
// nobody knows what happens to it while the manager does not look.
struct QuarantineRecord {
    SerialNumber serial;
    Bytes size;
    std::string detail;   // why; begins with kNotErased when the device's word is worth nothing
    bool lifted = false;  // in a mutation: remove the record

    static constexpr std::string_view kNotErased = "not-erased: ";
    [[nodiscard]] bool is_held() const { return detail.starts_with(kNotErased); }
};

struct IdempotencyRecord {
    std::string key;
    std::string body_hash;
    Composition answer;  // as it was created
};

struct HostRecord {
    HostId host;
    std::uint64_t revision = 0;
};

// A composition as it shall be; `revision` inside is the one after the change, and the one stored now must be
// exactly one less (0 stored: it must not exist yet).
struct CompositionChange {
    Composition composition;
    bool forget = false;  // remove it; only for ended ones, without a check of the revision
};

// All or nothing of it becomes durable.
struct Mutation {
    std::vector<CompositionChange> compositions;
    std::vector<Event> events;
    std::vector<QuarantineRecord> quarantine;
    std::vector<HostRecord> hosts;
    std::optional<IdempotencyRecord> idempotency;
    std::optional<std::uint64_t> forget_events_up_to;
    std::vector<std::string> forget_idempotency;
};

struct StoreContents {
    std::vector<Composition> compositions;  // in order of their sequence
    std::vector<QuarantineRecord> quarantine;
    std::vector<HostRecord> hosts;
    std::vector<IdempotencyRecord> idempotency;  // oldest first
    std::uint64_t last_event = 0;
    std::uint64_t first_event = 0;
};

// Events with ids above `after`, oldest first.
struct EventQuery {
    std::uint64_t after = 0;
    std::size_t limit = 100;
    std::optional<CompositionId> composition;  // only those about it
};

// Durable state of the manager. One embedded implementation (SQLite); shaped so that a store shared by
// several managers can stand behind it: compare-and-swap by revision, and watch().
class Store {
  public:
    virtual ~Store() = default;

    virtual Result<StoreContents> load() = 0;

    // Queues the mutation; `done` is called from a thread of the store when it is durable or has failed:
    // kConflict when a revision did not match, kExhausted when the disk is full, kPermission when it is
    // read-only, kIo otherwise; then nothing of it is there, and the next one may succeed. Mutations become
    // durable in the order of the calls. Thread safe; `done` must not block.
    virtual void apply(Mutation mutation, std::function<void(Result<>)> done) = 0;

    // `done` is called from a thread of the store.
    virtual void read_events(EventQuery query, std::function<void(Result<std::vector<Event>>)> done) = 0;

    // Calls `changed` from a thread of the store after each mutation that became durable, whoever made it.
    // Set before the first apply().
    virtual void watch(std::function<void(const Mutation&)> changed) = 0;

    // Calls `changed` from a thread of the store with what is damaged of what the state would be recovered
    // from, while the state itself is good (also when that was found before this call), and with an empty
    // text once that is made up for. It must not block.
    virtual void watch_damage(std::function<void(const std::string& damage)> changed) = 0;
};

struct SqliteOptions {
    std::string path;                 // ":memory:" for tests that need no disk, and then without a log
    std::optional<Bytes> limit = {};  // the database does not grow beyond it: then as if the disk were full
    // Go on with what is left when something that was acknowledged is, or may be, lost.
    bool recover = false;
    // A snapshot is taken when the log has grown by this much, or by twice the database if that is more.
    Bytes snapshot_after = mebibytes(64);
    // The database follows the log after so long: until then it is brought up by the next start after a
    // crash.
    std::chrono::milliseconds commit_after{100};
    // The snapshot is read and checked so long after load(): not while a start needs the processor.
    std::chrono::milliseconds check_snapshot_after{10'000};
    // For tests: called before ("write", "sync", "cut", "commit") and after ("written", "synced",
    // "committed") what makes a group durable; a number other than 0 is the errno with which it fails.
    std::function<int(std::string_view point)> fault = {};
};

// Opens or creates the database, the log and the snapshot beside it. What is damaged is recovered when
// nothing that was acknowledged is lost by that (an event "store.recovered" tells); otherwise opening fails
// and says what to do. Every message names the path. Errors: kConflict when another manager has it open;
// kProtocol when it is damaged beyond that; kInvalidArgument when it is not a Memtide database or of a newer
// schema version; kIo, kPermission, kExhausted. What apply() reported is in the log, on the disk. One thread
// does all writing and puts whatever mutations have queued up meanwhile into one write of the log (group
// commit).
Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteOptions& options);

}  // namespace memtide::fm
