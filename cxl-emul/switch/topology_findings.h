#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/config/yaml.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// All that can be said about a topology file.
struct TopologyFindings {
    std::string file;
    std::string text;        // of the file, for showing lines of it
    std::string unreadable;  // why the file could not be read at all; else empty
    std::vector<YamlComplaint> mistakes;
    std::vector<YamlComplaint> remarks;  // no mistakes, and yet hardly meant
    Topology topology;                   // of use when there is no mistake

    [[nodiscard]] bool is_good() const { return unreadable.empty() && mistakes.empty(); }
};

// What else a host has to bear with, beyond the file itself: an error becomes a remark at the host's name.
using HostCheck = std::function<Result<>(const Topology&, const HostConfig&)>;

TopologyFindings examine_topology(const std::string& path, const HostCheck& host_check = {});
// As examine_topology(), for text that is already there.
TopologyFindings examine_topology_text(std::string text, std::string name, const HostCheck& host_check = {});

// For people, as a compiler does it: a block for each mistake, with FILE:LINE:COLUMN, the line itself, what
// to do and what the key means; then the remarks; at last one line with the sum. Nothing in it can steer a
// terminal.
std::string explain(const TopologyFindings& findings);

// What a key of a topology file means: of "switches.ports.id", say. Empty for what is no key of one.
std::string_view meaning_of_key(std::string_view key_path);

}  // namespace memtide::emul
