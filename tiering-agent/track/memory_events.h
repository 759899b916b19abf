#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <linux/perf_event.h>

#include "common/base/error.h"
#include "common/sysfs/files.h"

// The events with which processors sample the addresses of loads and stores: PEBS of Intel's, IBS of AMD's.
namespace memtide::agent {

struct MemoryEvent {
    std::string name{};
    perf_event_attr attributes{};
    // Some processors count loads only beside another event that leads the group (mem-loads-aux).
    std::optional<perf_event_attr> leader{};
};

// Which bits of which word of perf_event_attr a term of an event has: "config:0-7,32-35", "config1:0-15"
// (Documentation/ABI/testing/sysfs-bus-event_source-devices-format).
struct TermFormat {
    unsigned word = 0;                                  // config, config1, config2
    std::vector<std::pair<unsigned, unsigned>> bits{};  // first and last, lowest first
    static std::optional<TermFormat> parse(std::string_view text);
};

// Sets the words as "event=0xcd,umask=0x1,ldlat=3" says. kProtocol for terms without a format, and for values
// that are no number or too large.
Result<> apply_terms(std::string_view terms, const std::map<std::string, TermFormat, std::less<>>& formats,
                     perf_event_attr& attributes);

// No processor's: each page fault that needs no disk, of which the record is the same.
MemoryEvent page_fault_event();

// What this processor has, to be sampled so many times a second on each of its threads (Hz), for user space.
// kUnavailable when that is nothing, as in guests.
Result<std::vector<MemoryEvent>> find_memory_events(const Files& files, unsigned frequency);

}  // namespace memtide::agent
