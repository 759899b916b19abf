#include "tiering-agent/app/once.h"

#include <algorithm>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace memtide::agent {
namespace {

namespace json = boost::json;

std::string_view block_state(const MemoryBlock& block) {
    if (block.state == BlockState::kOffline) return "offline";
    if (block.state == BlockState::kGoingOffline) return "going-offline";
    return block.movable ? "online movable" : "online kernel";
}

std::string blocks_as_text(const Region& region) {
    std::string text;
    // Runs of neighbours in the same state on one line.
    for (auto first = region.blocks.begin(); first != region.blocks.end();) {
        auto last = first;
        while (std::next(last) != region.blocks.end() && std::next(last)->index == last->index + 1 &&
               block_state(*std::next(last)) == block_state(*first) && std::next(last)->node == first->node)
            ++last;
        text += first == last ? fmt::format("    memory{}", first->index)
                              : fmt::format("    memory{}-{}", first->index, last->index);
        text += fmt::format("  {}", block_state(*first));
        if (first->node) text += fmt::format("  node {}", *first->node);
        text += '\n';
        first = std::next(last);
    }
    return text;
}

std::string region_as_text(const Region& region) {
    std::string text = fmt::format("  {}  {}  {}  at {:#x}  {}\n", region.name, region.window,
                                   format_bytes({region.range.size}), region.range.start,
                                   !region.committed ? "not committed"
                                   : region.enabled  ? "enabled"
                                                     : "disabled");
    for (const DaxDevice& dax : region.dax)
        text += fmt::format("    {}  {}\n", dax.name, dax.driver.empty() ? "no driver" : dax.driver);
    return text + blocks_as_text(region);
}

bool belongs_to(const Region& region, const Memdev& memdev) {
    return std::ranges::find(region.targets, memdev.name, &Target::memdev) != region.targets.end();
}

}  // namespace

std::string seen_as_text(const Seen& seen) {
    std::string text = fmt::format("memory blocks of {}\n", format_bytes(seen.block_size));
    if (seen.memdevs.empty()) text += "no CXL memory devices\n";
    for (const Memdev& memdev : seen.memdevs) {
        text += fmt::format("{}  serial {}  {} volatile{}\n", memdev.name, format_serial(memdev.serial),
                            format_bytes(memdev.ram_size), memdev.has_endpoint ? "" : "  no endpoint port");
        for (const Region& region : seen.regions)
            if (belongs_to(region, memdev)) text += region_as_text(region);
    }
    for (const Region& region : seen.regions)
        if (std::ranges::all_of(region.targets, [](const Target& t) { return t.memdev.empty(); }))
            text += "without a memdev:\n" + region_as_text(region);
    return text;
}

std::string seen_as_json(const Seen& seen) {
    json::array memdevs;
    for (const Memdev& memdev : seen.memdevs)
        memdevs.push_back({{"name", memdev.name},
                           {"serial", format_serial(memdev.serial)},
                           {"size", memdev.ram_size.value},
                           {"has_endpoint", memdev.has_endpoint}});
    json::array regions;
    for (const Region& region : seen.regions) {
        json::array targets, dax, blocks;
        for (const Target& target : region.targets)
            targets.push_back({{"decoder", target.decoder}, {"memdev", target.memdev}});
        for (const DaxDevice& device : region.dax)
            dax.push_back({{"name", device.name}, {"driver", device.driver}});
        for (const MemoryBlock& block : region.blocks)
            blocks.push_back({{"name", fmt::format("memory{}", block.index)},
                              {"state", block_state(block)},
                              {"node", block.node ? json::value(*block.node) : json::value(nullptr)}});
        regions.push_back({{"name", region.name},
                           {"window", region.window},
                           {"start", fmt::format("{:#x}", region.range.start)},
                           {"size", region.range.size},
                           {"committed", region.committed},
                           {"enabled", region.enabled},
                           {"targets", std::move(targets)},
                           {"dax", std::move(dax)},
                           {"blocks", std::move(blocks)}});
    }
    return json::serialize(json::object{{"block_size", seen.block_size.value},
                                        {"memdevs", std::move(memdevs)},
                                        {"regions", std::move(regions)}}) +
           "\n";
}

}  // namespace memtide::agent
