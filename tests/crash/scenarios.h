#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fabric-manager/engine/rig.h"

// What a manager goes through in the crash test. Each can be begun again wherever it was interrupted, as its
// clients, agents and operators would: they repeat what was not answered.
namespace memtide::fm::crash {

// One process' share of a scenario: a manager on the files of `folder`, where the fake switch also keeps its
// state.
struct Life {
    Rig rig;
    std::string folder;
    std::uint64_t seed = 0;  // of the scenario, the same in every life of it

    // Creates with an idempotency key until that was answered. Nothing: refused for good.
    Composition create(const std::string& key, const std::string& host, std::uint64_t units,
                       std::optional<std::chrono::seconds> ttl = {}, PlacementPolicy policy = {});
    // Asks for it unless it has that size, and waits until it does. Not for one on its way out.
    void resize(const CompositionId& id, std::uint64_t units);
    // A shrink by an exchange that comes to nothing: what there was is never touched.
    void resize_in_vain(const CompositionId& id, std::uint64_t from, std::uint64_t units);
    void reach_online(const CompositionId& id);  // or an end
    void release(const CompositionId& id, bool force = false);
    void reach_end(const CompositionId& id);
    void until(const std::string& what, const std::function<bool()>& condition);
    // What a scenario remembers over a crash, beside what the manager does.
    [[nodiscard]] bool marked(const std::string& name) const;
    void mark(const std::string& name) const;
};

struct Scenario {
    std::string name;
    // Before the manager starts: devices and their behaviour, agents, configuration.
    void (*prepare)(Life& life);
    void (*live)(Life& life);
    int compositions;         // there are afterwards
    int seeds = 1;            // lives with different seeds
    bool every_point = true;  // otherwise only some are killed at, because a life takes long
    int more_parts = 0;       // they had, beside one each
};

const std::vector<Scenario>& scenarios();

// What must hold at the end of every scenario; empty when it does.
std::vector<std::string> violations(Life& life, const Scenario& scenario);

}  // namespace memtide::fm::crash
