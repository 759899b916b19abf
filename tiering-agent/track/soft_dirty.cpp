#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tiering-agent/track/page_map.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

class SoftDirtyTracker final : public Tracker {
  public:
    SoftDirtyTracker(Files& files, FrameNodes nodes) : files_(files), nodes_(std::move(nodes)) {}

    [[nodiscard]] std::string_view name() const override { return "soft-dirty"; }
    [[nodiscard]] std::string_view sees() const override { return "writes"; }

    Result<> refresh() override {
        auto nodes = FrameNodes::read(files_);
        if (!nodes) return std::unexpected(nodes.error());
        nodes_ = *std::move(nodes);
        return {};
    }

    Result<> begin(int pid) override {
        constexpr std::string_view kClearSoftDirty = "4";
        return files_.write(fmt::format("proc/{}/clear_refs", pid), kClearSoftDirty);
    }

    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        auto map = PageMap::open(files_, pid);
        if (!map) return std::unexpected(map.error());
        Look look;
        for (const VirtualRange range : ranges) {
            const auto runs = map->populated(range);
            if (!runs) return std::unexpected(runs.error());
            for (const PageRun& run : *runs)
                if (auto done = look_at(*map, run, tiers, visit, look); !done)
                    return std::unexpected(done.error());
        }
        return look;
    }

  private:
    // In groups as HeatMap has them.
    Result<> look_at(PageMap& map, PageRun run, const TierOfNode& tiers, const Visit& visit, Look& look) {
        for (std::uint64_t page = run.begin; page < run.end;) {
            const std::uint64_t next = std::min(run.end, (page / kPagesPerHuge + 1) * kPagesPerHuge);
            const auto words = map.read(page, next - page);
            if (!words) return std::unexpected(words.error());
            if (words->empty()) return {};
            seen_.clear();
            bool any = false;
            for (const PageMapEntry word : *words) {
                seen_.push_back(see(word, run.huge, tiers));
                any = any || seen_.back().tier != PageHeat::kNowhere;
                count(seen_.back(), look);
            }
            if (any) visit(page, seen_);
            page += words->size();
        }
        return {};
    }

    [[nodiscard]] PageSeen see(PageMapEntry word, bool huge, const TierOfNode& tiers) const {
        if (!word.is_present() || word.frame() == 0) return {};
        const int node = nodes_.node_of(word.frame());
        if (node < 0 || static_cast<std::size_t>(node) >= tiers.size()) return {};
        return {.tier = tiers[static_cast<std::size_t>(node)], .touched = word.is_soft_dirty(), .huge = huge};
    }

    static void count(const PageSeen& seen, Look& look) {
        if (seen.tier == PageHeat::kNowhere) return;
        ++look.present_pages;
        if (!seen.touched) return;
        ++look.touched_pages;
        if (seen.tier != 0) ++look.touched_slow_pages;
    }

    Files& files_;
    FrameNodes nodes_;
    std::vector<PageSeen> seen_;
};

// A page of this process tells: clean when the bits were cleared, dirty when it was written to since.
Result<> check_soft_dirty(Files& files) {
    constexpr std::size_t kSize = std::size_t{1} << kPageShift;
    const auto unmap = [](void* page) { ::munmap(page, kSize); };
    const std::unique_ptr<void, decltype(unmap)> page(
        ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), unmap);
    if (page.get() == MAP_FAILED) return fail_errno("map", "a page", errno);
    auto* const byte = static_cast<volatile char*>(page.get());
    *byte = 1;
    const int self = ::getpid();
    if (auto cleared = files.write(fmt::format("proc/{}/clear_refs", self), "4"); !cleared) return cleared;
    auto map = PageMap::open(files, self);
    if (!map) return std::unexpected(map.error());
    const auto is_dirty = [&]() -> Result<bool> {
        const auto words = map->read(reinterpret_cast<std::uint64_t>(page.get()) >> kPageShift, 1);
        if (!words) return std::unexpected(words.error());
        return !words->empty() && words->front().is_soft_dirty();
    };
    const auto before = is_dirty();
    if (!before) return std::unexpected(before.error());
    *byte = 2;
    const auto after = is_dirty();
    if (!after) return std::unexpected(after.error());
    if (*before || !*after)
        return fail(ErrorCode::kUnavailable, "this kernel keeps no soft-dirty bits (CONFIG_MEM_SOFT_DIRTY)");
    return {};
}

}  // namespace

Result<std::unique_ptr<Tracker>> make_soft_dirty_tracker(Files& files) {
    if (auto good = check_soft_dirty(files); !good) return std::unexpected(good.error());
    auto nodes = FrameNodes::read(files);
    if (!nodes) return std::unexpected(nodes.error());
    return std::make_unique<SoftDirtyTracker>(files, *std::move(nodes));
}

}  // namespace memtide::agent
