// What the host shows: the CXL bus through libcxl, dax devices and memory blocks from sysfs.
#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "tiering-agent/hotplug/host.h"

namespace memtide::agent {
namespace {

const std::string kMemory = "sys/devices/system/memory/";
const std::string kCxl = "sys/bus/cxl/devices/";

bool overlaps_another(const std::vector<Region>& regions, const RegionRecord& record) {
    return std::ranges::any_of(regions, [&](const Region& region) {
        return region.name != record.region && region.range.overlaps(record.range);
    });
}

}  // namespace

// "block_size_bytes" is hexadecimal without 0x.
Result<Bytes> read_block_size(const Files& files) {
    auto text = files.read(kMemory + "block_size_bytes");
    if (!text)
        return std::unexpected(std::move(text.error()).with_context("this kernel has no memory hot-plug"));
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), size, 16);
    if (error != std::errc{} || end != text->data() + text->size() || size == 0)
        return fail(ErrorCode::kProtocol, fmt::format("block_size_bytes holds \"{}\"", *text));
    return Bytes{size};
}

Result<Seen> SysfsHost::look(const std::vector<SerialNumber>& wanted) {
    let_autoprobe_go();
    const auto block_size = read_block_size(parts_.files);
    if (!block_size) return std::unexpected(block_size.error());
    auto view = parts_.bus.enumerate();
    if (!view) return std::unexpected(std::move(view.error()));
    Seen seen{.memdevs = std::move(view->memdevs),
              .regions = std::move(view->regions),
              .records = parts_.records.all(),
              .used = parts_.records.used(),
              .block_size = *block_size,
              .auto_online = parts_.files.read(kMemory + "auto_online_blocks").value_or("")};

    std::set<std::string> memdevs;
    for (const Memdev& memdev : seen.memdevs)
        if (std::ranges::find(wanted, memdev.serial) != wanted.end()) memdevs.insert(memdev.name);
    for (Region& region : seen.regions) {
        const bool ours =
            std::ranges::any_of(region.targets, [&](const Target& t) { return memdevs.contains(t.memdev); });
        const bool recorded =
            std::ranges::find(seen.records, region.name, &RegionRecord::region) != seen.records.end();
        if (ours || recorded) add_details(region, seen.block_size);
    }
    for (RegionRecord& record : seen.records)
        // Another region at these addresses: the record is older than it.
        if (!overlaps_another(seen.regions, record)) record.blocks = blocks_in(record.range, seen.block_size);
    return seen;
}

void SysfsHost::add_details(Region& region, Bytes block_size) const {
    region.blocks = blocks_in(region.range, block_size);
    const std::string dax_region = fmt::format("{}{}/dax_{}", kCxl, region.name, region.name);
    for (const std::string& name : parts_.files.list(dax_region)) {
        if (!name.starts_with("dax") || name.find('.') == std::string::npos) continue;
        const std::string device = fmt::format("{}/{}", dax_region, name);
        const auto size = parts_.files.read_number(device + "/size");
        const auto start = parts_.files.read_number(device + "/resource");
        if (!size || *size == 0) continue;  // a seed: no memory behind it
        region.dax.push_back(
            {.name = name,
             .driver = parts_.files.link_target(device + "/driver").value_or(""),
             .range = start ? AddressRange{*start, *size} : AddressRange{region.range.start, *size}});
    }
}

std::vector<MemoryBlock> SysfsHost::blocks_in(AddressRange range, Bytes block_size) const {
    std::vector<MemoryBlock> blocks;
    const BlockSpan span = whole_blocks(range, block_size);
    for (std::uint64_t index = span.first; index < span.first + span.count; ++index)
        if (parts_.files.exists(fmt::format("{}memory{}/state", kMemory, index)))
            blocks.push_back(read_block(index));
    return blocks;
}

MemoryBlock SysfsHost::read_block(std::uint64_t index) const {
    const std::string block = fmt::format("{}memory{}", kMemory, index);
    MemoryBlock seen{.index = index};
    const std::string state = parts_.files.read(block + "/state").value_or("");
    if (state == "offline") return seen;
    seen.state = state == "online" ? BlockState::kOnline : BlockState::kGoingOffline;
    // Of an online block this is the zone it is in, of an offline one those it could go to.
    seen.movable = seen.state == BlockState::kOnline &&
                   parts_.files.read(block + "/valid_zones").value_or("") == "Movable";
    for (const std::string& name : parts_.files.list(block)) {
        if (!name.starts_with("node")) continue;
        int node = 0;
        if (std::from_chars(name.data() + 4, name.data() + name.size(), node).ec == std::errc{})
            seen.node = node;
    }
    return seen;
}

}  // namespace memtide::agent
