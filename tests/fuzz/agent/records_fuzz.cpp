// Whatever is in the file of region records: it is read or refused, and what was read is written the same
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tiering-agent/hotplug/records.h"

using namespace memtide::agent;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto records = parse_records(text, "boot");
    if (!records) return 0;
    const auto again = parse_records(format_records(*records, "boot"), "boot");
    if (!again || *again != *records) std::abort();
    return 0;
}
