// Whatever stands in a scenario file, or is asked of the control interface: faults that can happen in the
// topology and are written as they were read, or complaints that each begin with a place.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cxl-emul/faults/fault_place.h"
#include "cxl-emul/faults/fault_text.h"
#include "cxl-emul/faults/read_fault.h"
#include "cxl-emul/faults/scenario.h"

using namespace memtide::emul;

namespace {

const Topology& small_topology() {
    static const Topology topology =
        parse_topology(
            "name: t\nswitches:\n  - name: switch0\n    listen: [\"tcp://127.0.0.1:0\"]\n"
            "    ports: [{id: 0, host: host0}, {id: 1, host: host1}, {id: 2, device: mld0}]\n"
            "    vcss: [{id: 0, upstream_port: 0, vppbs: 4}]\n"
            "    devices: [{name: mld0, kind: mld, serial: 1, size: 512MiB, lds: [256MiB, 256MiB]}]\n",
            "t")
            .value();
    return topology;
}

void check_fault(const Fault& fault) {
    if (!place_of(fault, small_topology())) std::abort();
    const auto again = parse_fault(to_string(fault), "again", &small_topology());
    if (!again || *again != fault) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto scenario = parse_scenario(text, "fuzz.yaml", &small_topology());
    if (scenario)
        for (const ScheduledFault& one : scenario->faults) check_fault(one.fault);
    else if (!scenario.error().message.starts_with("fuzz.yaml"))
        std::abort();
    const auto fault = parse_fault(text, "fuzz.yaml", &small_topology());
    if (fault)
        check_fault(*fault);
    else if (!fault.error().message.starts_with("fuzz.yaml"))
        std::abort();
    return 0;
}
