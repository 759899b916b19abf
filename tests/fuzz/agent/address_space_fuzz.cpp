// Whatever /proc says of a process, whose names its owner chooses: mappings come out ascending and apart from
// each other, and nothing falls over.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/observe/nodes.h"
#include "tiering-agent/observe/processes.h"
#include "tiering-agent/observe/words.h"

using namespace memtide::agent;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    auto vmas = parse_maps(text);
    std::uint64_t end = 0;
    for (const Vma& vma : vmas) {
        if (vma.range.begin < end || vma.range.end <= vma.range.begin) std::abort();
        end = vma.range.end;
    }
    SmapsReader reader(vmas);
    for (std::string_view rest = text; !rest.empty();) {
        const std::string_view line = take_line(rest);
        reader.line(line);
        apply_numa_maps_line(line, vmas);
    }
    (void)parse_special_sizes(text);
    if (const auto stat = parse_stat(text); stat && (stat->pid < 0 || text.find(stat->comm) == text.npos))
        std::abort();
    const CgroupMembership membership = parse_cgroup(text);
    if (membership.path.find('\n') != std::string::npos) std::abort();
    const std::string command = command_line(text);
    if (command.size() > kCommandLimit || command.find('\n') != std::string::npos) std::abort();
    if (const auto numbers = parse_number_list(text); numbers && numbers->size() > 65536) std::abort();
    return 0;
}
