#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "tiering-agent/far/far_tier.h"
#include "tiering-agent/observe/process_advice.h"
#include "tiering-agent/observe/words.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/track/page_map.h"

namespace memtide::agent {
namespace {

// Files of the kernel tell sizes in kB, as they call KiB.
struct SwapSizes {
    Bytes total{};
    Bytes free{};
    Bytes zswap_kept{};
    Bytes zswap_taken{};
};

SwapSizes parse_meminfo(std::string_view text) {
    SwapSizes sizes;
    while (!text.empty()) {
        std::string_view line = take_line(text);
        const std::string_view name = take_word(line);
        const Bytes size{whole_number<std::uint64_t>(take_word(line)).value_or(0) << 10};
        if (name == "SwapTotal:") sizes.total = size;
        if (name == "SwapFree:") sizes.free = size;
        if (name == "Zswap:") sizes.zswap_taken = size;
        if (name == "Zswapped:") sizes.zswap_kept = size;
    }
    return sizes;
}

// Names of block devices of zram among those that /proc/swaps lists: "/dev/zram0 partition 524284 0 100".
std::vector<std::string> zram_devices(std::string_view text) {
    constexpr std::string_view kZram = "/dev/zram";
    std::vector<std::string> devices;
    while (!text.empty()) {
        std::string_view line = take_line(text);
        const std::string_view path = take_word(line);
        if (path.starts_with(kZram)) devices.emplace_back(path.substr(std::string_view("/dev/").size()));
    }
    return devices;
}

// Neighbours as one; `units` says how many are in each.
struct Part {
    iovec range{};
    std::size_t units = 0;
};
std::vector<Part> join(std::span<const FarUnit> units) {
    std::vector<Part> parts;
    std::uint64_t end = 0;
    for (const FarUnit& unit : units) {
        const std::size_t size = std::size_t{unit.pages} << kPageShift;
        if (parts.empty() || unit.page != end)
            parts.push_back({{reinterpret_cast<void*>(unit.page << kPageShift), 0}, 0});
        parts.back().range.iov_len += size;
        ++parts.back().units;
        end = unit.page + unit.pages;
    }
    return parts;
}

class SwapTier final : public FarTier {
  public:
    explicit SwapTier(const Files& files) : files_(files) {}

    [[nodiscard]] std::string_view name() const override { return "swap"; }

    [[nodiscard]] Result<FarRoom> room() const override {
        const auto meminfo = files_.read("proc/meminfo");
        if (!meminfo) return std::unexpected(meminfo.error());
        const SwapSizes sizes = parse_meminfo(*meminfo);
        if (sizes.total == Bytes{})
            return fail(ErrorCode::kUnavailable,
                        "this machine has no swap: cold pages stay (swapon(8); zram and zswap keep them "
                        "compressed in memory)");
        FarRoom room{.capacity = sizes.total,
                     .free = sizes.free,
                     .kept = sizes.zswap_kept,
                     .taken = sizes.zswap_taken};
        for (const std::string& device : zram_devices(files_.read("proc/swaps").value_or(""))) {
            // Documentation/admin-guide/blockdev/zram.rst: orig_data_size, compr_data_size, mem_used_total.
            const std::string text = files_.read("sys/block/" + device + "/mm_stat").value_or("");
            std::string_view words = text;
            room.kept.value += whole_number<std::uint64_t>(take_word(words)).value_or(0);
            take_word(words);
            room.taken.value += whole_number<std::uint64_t>(take_word(words)).value_or(0);
        }
        return room;
    }

    Result<std::vector<Outcome>> page_out(ProcessId process, std::span<const FarUnit> units) override {
        auto adviser = ProcessAdvice::open(files_, process);
        if (!adviser) return std::unexpected(adviser.error());
        auto map = PageMap::open(files_, process.pid);
        if (!map) return std::unexpected(map.error());
        std::vector<Outcome> outcomes(units.size());
        const std::vector<Part> parts = join(units);
        std::vector<iovec> ranges;
        std::size_t first_unit = 0;
        for (std::size_t first = 0; first < parts.size();) {
            constexpr std::size_t kMostRanges = 512;  // the kernel takes UIO_MAXIOV, 1024
            const std::size_t count = std::min(kMostRanges, parts.size() - first);
            ranges.clear();
            for (std::size_t i = 0; i < count; ++i) ranges.push_back(parts[first + i].range);
            const auto advised = adviser->advise(ranges, MADV_PAGEOUT);
            if (!advised) return std::unexpected(advised.error());
            std::size_t left = advised->bytes;
            std::size_t done = 0;
            while (done < count && left >= ranges[done].iov_len) {
                left -= ranges[done].iov_len;
                first_unit += parts[first + done++].units;
            }
            if (done < count && (advised->error != 0 || done == 0)) {
                for (std::size_t i = 0; i < parts[first + done].units; ++i)
                    outcomes[first_unit++].error = advised->error == 0 ? EAGAIN : advised->error;
                ++done;
            }
            first += done;
        }
        if (auto counted = count_taken(*map, units, parts, outcomes); !counted)
            return std::unexpected(counted.error());
        if (auto same = check_same(files_, process); !same) return std::unexpected(same.error());
        return outcomes;
    }

    Result<std::vector<Where>> find(ProcessId process, std::span<const std::uint64_t> pages) override {
        auto map = PageMap::open(files_, process.pid);
        if (!map) return std::unexpected(map.error());
        std::vector<Where> where;
        where.reserve(pages.size());
        for (std::size_t first = 0; first < pages.size();) {
            // Neighbours, and what is nearly so, at once.
            constexpr std::uint64_t kNear = 64;
            std::size_t end = first + 1;
            while (end < pages.size() && pages[end] - pages[end - 1] < kNear &&
                   pages[end] - pages[first] < kPagesPerHuge)
                ++end;
            const auto words = map->read(pages[first], pages[end - 1] - pages[first] + 1);
            if (!words) return std::unexpected(words.error());
            for (std::size_t i = first; i < end; ++i) {
                const std::uint64_t index = pages[i] - pages[first];
                where.push_back(index < words->size() ? where_is((*words)[index]) : Where::kNowhere);
            }
            first = end;
        }
        if (auto same = check_same(files_, process); !same) return std::unexpected(same.error());
        return where;
    }

  private:
    // Bit 62 of the pagemap (Documentation/admin-guide/mm/pagemap.rst): swapped.
    static Where where_is(PageMapEntry entry) {
        if (entry.is_present()) return Where::kHere;
        return (entry.bits >> 62 & 1) != 0 ? Where::kFar : Where::kNowhere;
    }

    // What the kernel was asked to send it may have kept; some may have been asked for again already.
    static Result<> count_taken(PageMap& map, std::span<const FarUnit> units, const std::vector<Part>& parts,
                                std::vector<Outcome>& outcomes) {
        std::size_t unit = 0;
        for (const Part& part : parts) {
            auto words = map.read(units[unit].page, part.range.iov_len >> kPageShift);
            if (!words) return std::unexpected(words.error());
            for (std::size_t i = 0; i < part.units; ++i, ++unit) {
                const auto mine = words->first(std::min<std::size_t>(units[unit].pages, words->size()));
                *words = words->subspan(mine.size());
                Outcome& outcome = outcomes[unit];
                outcome.taken = static_cast<std::uint32_t>(std::ranges::count_if(
                    mine, [](PageMapEntry entry) { return where_is(entry) == Where::kFar; }));
                if (outcome.taken == units[unit].pages)
                    outcome.error = 0;
                else if (outcome.error == 0)
                    outcome.error = EBUSY;
            }
        }
        return {};
    }

    const Files& files_;
};

}  // namespace

double FarRoom::gain() const {
    if (kept == Bytes{}) return 1;
    return 1 - std::min(1.0, double(taken.value) / double(kept.value));
}

std::unique_ptr<FarTier> make_swap_tier(const Files& files) { return std::make_unique<SwapTier>(files); }

}  // namespace memtide::agent
