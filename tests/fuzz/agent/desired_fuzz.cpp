// Whatever a manager answers: the agent reads a desired state or says what is wrong with it; and what it took
// can be planned for and reported.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tiering-agent/fabric/messages.h"
#include "tiering-agent/hotplug/plan.h"

using namespace memtide;
using namespace memtide::agent;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto desired = parse_desired(text, HostId{"host0"});
    if (!desired) {
        if (desired.error().message.empty()) std::abort();
        return 0;
    }
    const Seen seen{
        .memdevs = {{.name = "mem0", .serial = {1}, .ram_size = mebibytes(256), .has_endpoint = true}},
        .block_size = mebibytes(128)};
    const Plan plan = make_plan(*desired, seen, {}, std::chrono::system_clock::now());
    if (plan.regions.size() != desired->regions.size()) std::abort();
    Observed observed{.revision_seen = desired->revision};
    for (const auto& composition : plan.regions) observed.regions.push_back(composition.observed);
    if (format_observed(observed, {}).empty()) std::abort();
    return 0;
}
