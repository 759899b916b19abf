#include "libmemtide/src/tiers.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "tiering-agent/observe/published_tiers.h"
#include "tiering-agent/observe/words.h"
#include "tiering-agent/observe/zones.h"

namespace memtide::library {
namespace {

// Lines as "Node 0 MemFree:        24683656 kB".
struct NodeMeminfo {
    std::uint64_t total = 0;  // KiB
    std::uint64_t free = 0;
    std::uint64_t file_cache = 0;
};

NodeMeminfo read_meminfo(const Files& files, int node) {
    NodeMeminfo info;
    const auto text = files.read(fmt::format("sys/devices/system/node/node{}/meminfo", node));
    if (!text) return info;
    std::string_view rest = *text;
    while (!rest.empty()) {
        std::string_view line = agent::take_line(rest);
        agent::take_word(line);
        agent::take_word(line);
        const std::string_view key = agent::take_word(line);
        constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
        const auto kib =
            std::min(agent::whole_number<std::uint64_t>(agent::take_word(line)).value_or(0), kMost);
        if (key == "MemTotal:") info.total = kib;
        if (key == "MemFree:") info.free = kib;
        if (key == "Active(file):" || key == "Inactive(file):") info.file_cache += kib;
    }
    return info;
}

// "fast=0;slow=1-2" as the text that the agent publishes.
std::string as_published(std::string_view wish) {
    std::string text(wish);
    std::ranges::replace(text, ';', '\n');
    std::ranges::replace(text, '=', ' ');
    return text;
}

}  // namespace

const std::string& tiers_wish() {
    static const std::string* const kWish = [] {
        const char* const value = ::secure_getenv("MEMTIDE_TIERS");
        return new std::string(value == nullptr ? "" : value);
    }();
    return *kWish;
}

Result<std::vector<agent::Tier>> known_tiers(const Files& files, std::string_view wish) {
    std::string text;
    std::string source = "MEMTIDE_TIERS";
    if (wish.starts_with('/') || wish.empty()) {
        source = wish.empty() ? agent::kPublishedTiers : std::string(wish);
        auto read = files.read(source.substr(1));
        if (!read && (!wish.empty() || read.error().code != ErrorCode::kNotFound))
            return std::unexpected(std::move(read.error()));
        if (!read) {
            auto tiers = agent::group_tiers(agent::read_nodes(files));
            if (!tiers) return std::unexpected(std::move(tiers.error()));
            return std::move(tiers->tiers);
        }
        text = *std::move(read);
    } else {
        text = as_published(wish);
    }
    auto tiers = agent::parse_published_tiers(text);
    if (!tiers) return std::unexpected(std::move(tiers.error()).with_context(source));
    for (agent::Tier& tier : *tiers)
        for (const int node : tier.nodes) tier.capacity += Bytes{read_meminfo(files, node).total * 1024};
    return tiers;
}

Result<agent::Tier> find_tier(const Files& files, std::string_view wish, std::string_view name) {
    auto tiers = known_tiers(files, wish);
    if (!tiers) return std::unexpected(std::move(tiers.error()));
    std::string names;
    for (agent::Tier& tier : *tiers) {
        if (tier.name == name) return std::move(tier);
        names += (names.empty() ? "" : ", ") + tier.name;
    }
    return fail(ErrorCode::kNotFound, fmt::format("this machine has no tier \"{}\"; its tiers are {}", name,
                                                  names.empty() ? "none" : names));
}

Bytes room_in(const Files& files, const std::vector<int>& nodes) {
    const auto usable = agent::read_usable_pages(files);
    std::uint64_t room = 0;  // KiB
    for (const int node : nodes) {
        const NodeMeminfo info = read_meminfo(files, node);
        std::uint64_t free = info.free;
        if (usable) {
            const auto found = usable->find(node);
            free = found == usable->end() ? 0 : found->second * 4;
        }
        // Some of the cache is in use, whatever happens: programs that run are in it.
        const std::uint64_t could_be = free + info.file_cache / 2;
        constexpr std::uint64_t kMostReserve = std::uint64_t{1} << 20;
        const std::uint64_t reserve = std::min(info.total / 50, kMostReserve);
        room += could_be - std::min(could_be, reserve);
    }
    return Bytes{room * 1024};
}

}  // namespace memtide::library
