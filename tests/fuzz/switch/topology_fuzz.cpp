// Whatever stands in a topology file: a topology, or complaints that each begin with a place.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cxl-emul/switch/model.h"
#include "cxl-emul/switch/topology.h"
#include "tests/cxl-emul/switch/invariants.h"

using namespace memtide::emul;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto topology = parse_topology({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
    if (!topology) {
        if (!topology.error().message.starts_with("fuzz.yaml")) std::abort();
        return 0;
    }
    // What was let through makes a sound switch.
    for (const SwitchConfig& config : topology->switches)
        if (!test::broken_invariant(SwitchModel(config)).empty()) std::abort();
    return 0;
}
