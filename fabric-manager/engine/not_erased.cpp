// Memory that a host found not erased, although its device had said that it was.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/meters.h"
#include "fabric-manager/engine/problems.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

namespace {

// After so many LDs of one composition the fault is more likely the host's: it shall not empty the pool.
constexpr std::ptrdiff_t kMostReplaced = 3;

bool was_not_erased(const Part& part) { return part.reason && part.reason->code == "not-erased"; }

}  // namespace

// Quarantined and asked back in one entry of the journal, so that no crash comes in between; the other parts
// of its region go with it. Other memory takes its place when there is some, else the composition fails.
Async<Core::Progress> Core::not_erased_step(PartRef ref) {
    const AgentView agent = agent_view(ref);
    // A host that restarted since it got the memory may have written to it itself; after a restart of the
    // manager that is not known. Nobody is accused then: it is given back, erased, and handed out anew.
    const bool proven = ref.job().boot_at_bind == agent.boot_id;
    const std::string said =
        agent.region && agent.region->error ? agent.region->error->detail : std::string();
    std::vector<PartId> claimed;
    bool quarantined = false;
    Change change = [&](Draft& draft) {
        Part& part = draft.part();
        if (part.reason || is_end(part.state)) return false;
        part.reason =
            proven ? Reason{"not-erased",
                            fmt::format("its host found it not erased, and it is kept out of the pool{}{}",
                                        said.empty() ? "" : ": ", said)}
                   : Reason{"not-verified",
                            "its host found it not erased, and may have written to it before a restart "
                            "(of the host, or of this manager): it is erased again"};
        quarantined = proven && part.serial.value != 0;
        end_step(draft.c, part.number, "online", now(), part.reason->code);
        if (quarantined) {
            draft.quarantine = {part.serial, part.size,
                                std::string(QuarantineRecord::kNotErased) + part.reason->detail};
            Event event = event_about(draft, part, "ld.quarantined");
            event.code = part.reason->code;
            event.detail = fmt::format("LD {}: {}", part.memory.ld.value, part.reason->detail);
            draft.events.push_back(std::move(event));
        }
        const Part failing = part;
        Bytes missing = failing.release_requested ? Bytes{} : failing.size;
        for (Part& mate : draft.c.parts) {
            if (mate.region != failing.region || !is_lasting(mate)) continue;
            missing += mate.size;
            give_back(draft.c, mate);
        }
        claimed = replace_not_erased(draft, missing);
        if (claimed.empty() && missing.value != 0) note_failure(draft);
        give_back(draft.c, draft.part());
        return true;
    };
    const Progress progress = co_await advance(ref, std::move(change));
    // Journaled or not shows in the composition itself.
    const bool durable = std::ranges::all_of(
        claimed, [&](const PartId& id) { return ref.entry->c.part(id.number) != nullptr; });
    if (!durable)
        for (const PartId& id : claimed) inventory_.release(id);
    if (durable && quarantined && was_not_erased(ref.part())) meters_->not_erased.add();
    if (durable) kick(ref.entry);
    co_return progress;
}

// The new parts, claimed; none when nothing is to be replaced or nothing can be.
std::vector<PartId> Core::replace_not_erased(Draft& draft, Bytes missing) {
    Composition& c = draft.c;
    if (missing.value == 0 || c.release_requested || c.failed) return {};
    if (std::ranges::count_if(c.parts, was_not_erased) >= kMostReplaced) return {};
    const bool replacement = draft.part().replacement;
    Outcome<Plan> plan = place(inventory_, request_for_more(c, missing));
    if (!plan) {
        draft.part().reason->detail += "; nothing can take its place: " + plan.error().detail;
        return {};
    }
    Substitute substitute = add_substitute(c, *std::move(plan), replacement);
    if (substitute.parts.empty()) return {};
    Event event = event_about(draft, draft.part(), "composition.reprovided");
    event.code = draft.part().reason->code;
    event.detail = "memory that it cannot use is replaced by " + substitute.where;
    draft.events.push_back(std::move(event));
    return std::move(substitute.parts);
}

// --- Lifting ---

Async<Outcome<>> Core::lift_quarantine(SerialNumber serial) {
    return shielded(executor_, do_lift_quarantine(serial));
}

// It is free then and not known to be clean: erased before its next bind, and read back by the next host.
Async<Outcome<>> Core::do_lift_quarantine(SerialNumber serial) {
    const std::shared_ptr<Core> self = shared_from_this();
    // Of several that ask at the same time one lifts it; the others find it lifted.
    const AsyncMutex::Lock turn = co_await lifting_.lock();
    const auto known = quarantine_.find(serial);
    if (known == quarantine_.end())
        co_return refuse(
            problem::kNotQuarantined,
            fmt::format("no LD with the serial number {} is in quarantine", format_serial(serial)),
            ErrorCode::kNotFound);
    Mutation mutation;
    mutation.quarantine.push_back({serial, known->second.size, {}, true});
    const Result<> durable = co_await apply(std::move(mutation));
    if (!durable) co_return refuse_for_store(durable.error());
    quarantine_.erase(serial);
    Event event;
    event.type = "ld.recovered";
    event.code = "forced";
    event.forced = true;
    event.detail = fmt::format(
        "the LD with the serial number {} was taken out of quarantine by an operator; it "
        "is erased and read back before it is used",
        format_serial(serial));
    for (const auto& [name, device] : inventory_.devices())
        for (const LogicalDevice& ld : device.lds)
            if (ld.serial == serial) {
                inventory_.set_clean({name, ld.id}, false);
                inventory_.set_quarantined({name, ld.id}, false);
                event.switch_id = device.switch_id;
                event.device = name;
                break;
            }
    emit(std::move(event));
    heal_all();
    co_return Outcome<>();
}

}  // namespace memtide::fm
