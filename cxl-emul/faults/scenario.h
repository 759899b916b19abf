#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "cxl-emul/faults/fault.h"
#include "cxl-emul/switch/topology.h"

// A scenario file: faults, each with the time at which it begins. config/scenarios has examples,
// docs/faults.md every key.
namespace memtide::emul {

struct ScheduledFault {
    std::chrono::milliseconds at{0};  // since the scenario began
    Fault fault;                      // has a seed
    friend bool operator==(const ScheduledFault&, const ScheduledFault&) = default;
};

struct Scenario {
    std::uint64_t seed = 1;
    std::vector<ScheduledFault> faults;  // in the order of the file
};

// The seed of fault number `index` of a scenario, unless it has one of its own.
std::uint64_t seed_of(std::uint64_t scenario_seed, std::size_t index);

// kInvalidArgument with "FILE:LINE:COLUMN: what is wrong" for each mistake, kNotFound. With a topology every
// fault also has to be one that can happen there.
Result<Scenario> load_scenario(const std::string& path, const Topology* topology);
// As load_scenario(), for text that is already there; `name` stands for the file's name.
Result<Scenario> parse_scenario(std::string_view text, std::string name, const Topology* topology);

}  // namespace memtide::emul
