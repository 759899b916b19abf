// Looking for memory in place of what was lost.
#include <fmt/format.h>

#include "fabric-manager/engine/core.h"

namespace memtide::fm {

void Core::heal_all() {
    for (const CompositionId& id : degraded_) {
        const EntryPtr entry = find(id);
        if (!entry || entry->healing) continue;
        entry->healing = true;
        spawn(heal(entry));
    }
}

Core::Substitute Core::add_substitute(Composition& c, Plan plan, bool replacement) {
    const std::uint32_t first = c.next_part;
    add_parts(c, std::move(plan), now());
    Substitute result;
    for (Part& part : c.parts) {
        if (part.number < first) continue;
        part.replacement = replacement;
        result.where += fmt::format("{}{} of {}", result.where.empty() ? "" : ", ", format_bytes(part.size),
                                    part.memory.device.value);
        result.parts.push_back({c.id, part.number});
    }
    if (inventory_.claim(c)) {
        // It goes back with what it stands for.
        if (c.exchange && !replacement)
            for (const PartId& id : result.parts) c.exchange->coming.push_back(id.number);
        return result;
    }
    std::erase_if(c.parts, [&](const Part& part) { return part.number >= first; });
    std::erase_if(c.steps, [&](const Step& step) { return step.part >= first; });
    return {};
}

Async<> Core::heal(EntryPtr entry) {
    struct Healing {
        Entry& entry;
        ~Healing() { entry.healing = false; }
    };
    const Healing healing{*entry};
    std::string refused;
    std::vector<PartId> claimed;
    Change change = [&](Draft& draft) {
        Composition& c = draft.c;
        if (c.state != CompositionState::kDegraded || !c.placement.reprovide) return false;
        Outcome<Plan> plan = place(inventory_, request_for_more(c, c.size - lasting_size(c)));
        if (!plan) {
            refused = plan.error().detail;
            return false;
        }
        forget_ended_parts(entry, c);
        Substitute substitute = add_substitute(c, *std::move(plan), true);
        if (substitute.parts.empty()) return false;
        claimed = std::move(substitute.parts);
        if (c.phase_started == Time{}) c.phase_started = now();
        Event event;
        event.type = "composition.reprovided";
        event.composition = c.id;
        event.host = c.host;
        event.detail = "what it lost is replaced by " + substitute.where;
        draft.events.push_back(std::move(event));
        return true;
    };
    const Result<> durable = co_await journal(entry, std::move(change));
    if (!durable)
        for (const PartId& id : claimed) inventory_.release(id);
    if (durable && !claimed.empty()) {
        entry->heal_trouble.clear();
        kick(entry);
    }
    if (refused.empty() || refused == entry->heal_trouble) co_return;
    entry->heal_trouble = refused;
    Event event;
    event.type = "composition.reprovide-waits";
    event.composition = entry->c.id;
    event.host = entry->c.host;
    event.detail = "what it lost cannot be replaced yet: " + refused;
    emit(std::move(event));
}

}  // namespace memtide::fm
