#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "fabric-manager/store/store.h"

// Journal entries as the engine makes them, for benchmarks of the store.
namespace memtide::bench {

// As it is after `steps` of its steps, with what the engine keeps about each.
inline fm::Composition composition(std::uint64_t sequence, int steps) {
    const fm::Time now = std::chrono::system_clock::now();
    fm::Composition c;
    c.id = CompositionId(fmt::format("c-{:010}", sequence * 2654435761U % 10'000'000'000U));
    c.sequence = sequence;
    c.host = HostId(fmt::format("host{}", sequence % 256));
    c.size = mebibytes(256);
    c.state = fm::CompositionState::kOnline;
    c.revision = static_cast<std::uint64_t>(steps);
    fm::Part part;
    part.size = c.size;
    part.state = c.state;
    part.memory = {DeviceId(fmt::format("mld-{:016x}", sequence / 16)),
                   LdId{static_cast<std::uint16_t>(sequence % 16)}};
    part.serial = SerialNumber{sequence};
    part.where = {SwitchId("switch0"), static_cast<std::uint8_t>(sequence % 256), 3};
    part.node = 2;
    part.region_name = "region0";
    part.boot_id = "b4a4d6e0-0d6b-4c3a-8a3f-8f3e1a2b3c4d";
    c.parts.push_back(std::move(part));
    c.next_part = 1;
    c.was_online = true;
    c.created = c.updated = c.phase_started = now;
    for (const char* name : {"place", "erase-before-bind", "bind", "online", "drain", "unbind", "erase"}) {
        if (static_cast<int>(c.steps.size()) >= steps) break;
        fm::Step step;
        step.name = name;
        step.started = now;
        step.ended = now;
        step.detail = fmt::format("LD 3 of {} at vPPB 3", c.parts[0].memory.device.value);
        c.steps.push_back(std::move(step));
    }
    return c;
}

inline fm::Mutation entry(std::uint64_t sequence, int revision, std::uint64_t& next_event) {
    fm::Mutation mutation;
    mutation.compositions.push_back({composition(sequence, revision), false});
    const fm::Composition& c = mutation.compositions[0].composition;
    fm::Event event;
    event.id = next_event++;
    event.time = c.updated;
    event.type = "composition.state";
    event.composition = c.id;
    event.host = c.host;
    event.device = c.parts[0].memory.device;
    event.state = "Online";
    mutation.events.push_back(std::move(event));
    if (revision % 3 == 0) mutation.hosts.push_back({c.host, next_event});
    return mutation;
}

}  // namespace memtide::bench
