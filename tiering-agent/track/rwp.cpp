// Which pages are read or written, page by page, of processes that have consented (`memtide agent run`).
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "common/consent/consent_table.h"
#include "common/consent/userfault.h"
#include "common/log/log.h"
#include "tiering-agent/track/consents.h"
#include "tiering-agent/track/marked_pages.h"
#include "tiering-agent/track/page_map.h"
#include "tiering-agent/track/tracker.h"
#include "tiering-agent/track/trial_pages.h"

namespace memtide::agent {
namespace {

// The kernel covers anonymous and shared memory, and none that nobody may touch.
bool can_be_covered(const Vma& vma) {
    const bool kind = vma.kind == VmaKind::kAnonymous || vma.kind == VmaKind::kHeap ||
                      vma.kind == VmaKind::kStack || vma.kind == VmaKind::kShared;
    return kind && (vma.readable || vma.writable || vma.executable) &&
           vma.name != consent_table::kMappingName;
}

// What both have; both ascend.
std::vector<VirtualRange> intersection(std::span<const VirtualRange> left,
                                       std::span<const VirtualRange> right) {
    std::vector<VirtualRange> both;
    for (auto l = left.begin(), r = right.begin(); l != left.end() && r != right.end();) {
        if (l->overlaps(*r)) both.push_back({std::max(l->begin, r->begin), std::min(l->end, r->end)});
        (l->end < r->end ? l : r)++;
    }
    return both;
}

class RwpTracker final : public Tracker {
  public:
    RwpTracker(Files& files, MarkedPages pages, std::chrono::nanoseconds touch_cost)
        : files_(files), consents_(files), pages_(std::move(pages)), touch_cost_(touch_cost) {}

    [[nodiscard]] std::string_view name() const override { return "rwp"; }
    [[nodiscard]] std::string_view sees() const override { return "reads and writes"; }
    [[nodiscard]] bool ranks_huge_pages() const override { return pages_.ranks_huge_pages(); }
    Result<> refresh() override { return pages_.refresh(); }

    Result<> begin(int pid, const WindowWish& wish) override {
        if (consents_.rests(pid))
            return files_.exists(fmt::format("proc/{}", pid))
                       ? fail(ErrorCode::kUnavailable, "it has not consented")
                       : fail(ErrorCode::kNotFound, "it has ended");
        const auto maps = files_.read(fmt::format("proc/{}/maps", pid));
        if (!maps) return std::unexpected(maps.error());
        const std::vector<Vma> vmas = parse_maps(*maps);
        auto begun = protect(pid, vmas, wish);
        if (begun || begun.error().code != ErrorCode::kNotFound) return begun;
        // What was known was of another program, or another process: this one may have consented anew.
        consents_.forget(pid);
        covered_.erase(pid);
        return protect(pid, vmas, wish);
    }

    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        const auto found = covered_.find(pid);
        if (found == covered_.end()) return fail(ErrorCode::kNotFound, "no window was begun");
        // Of other memory nothing is known: neither that it is touched nor that it is not.
        auto look = pages_.look(pid, intersection(ranges, found->second.ranges), tiers, visit);
        if (look) look->touch_cost = touch_cost_;
        return look;
    }

  private:
    struct Covered {
        std::vector<VirtualRange> ranges{};  // of mappings that were protected when a window began, ascending
        std::uint64_t begun = 0;             // the last one; of begun_
    };

    // Every mapping that can be, since what is new or was moved by mremap(2) is covered by nothing.
    Result<> protect(int pid, const std::vector<Vma>& vmas, const WindowWish& wish) {
        const auto userfault = consents_.find(pid, vmas);
        if (!userfault) return std::unexpected(userfault.error());
        pages_.begin(pid, wish);
        forget_old();
        Covered& covered = covered_[pid];
        covered.begun = ++begun_;
        std::vector<VirtualRange> ranges;
        for (const Vma& vma : vmas) {
            if (!can_be_covered(vma)) continue;
            const bool known = std::ranges::binary_search(covered.ranges, vma.range);
            const auto done = protect(**userfault, vma.range, known);
            if (done)
                ranges.push_back(vma.range);
            else if (done.error().code == ErrorCode::kNotFound)
                return done;
        }
        covered.ranges = std::move(ranges);
        return {};
    }
    // The kernel protects whatever is covered, also by the program's own userfaultfd, for which it may not go
    // on at once. So what is not known to be ours is covered first, which is refused where it is another's.
    static Result<> protect(Userfault& userfault, VirtualRange range, bool known) {
        if (known) {
            auto done = userfault.protect(range.begin, range.end);
            if (done || done.error().code != ErrorCode::kConflict) return done;
        }
        if (auto covered = userfault.cover(range.begin, range.end); !covered) return covered;
        return userfault.protect(range.begin, range.end);
    }
    void forget_old() {
        constexpr std::uint64_t kKept = 1 << 16;  // windows of all processes together
        if (begun_ % kKept == 0)
            std::erase_if(covered_, [&](const auto& one) { return one.second.begun + kKept < begun_; });
    }

    Files& files_;
    Consents consents_;
    MarkedPages pages_;
    std::chrono::nanoseconds touch_cost_;
    std::map<int, Covered> covered_;  // by pid
    std::uint64_t begun_ = 0;         // windows, one for each process
};

// Pages of this process tell: protected until they are read, and how long such a read takes.
Result<std::chrono::nanoseconds> try_rwp(Files& files) {
    auto userfault = Userfault::open();
    if (!userfault) return std::unexpected(userfault.error());
    auto pages = TrialPages::map();
    if (!pages) return std::unexpected(pages.error());
    pages->write_all();
    const auto [begin, end] = pages->range();
    if (auto covered = userfault->cover(begin, end); !covered) return std::unexpected(covered.error());
    // Others may have had the processor meanwhile: the shortest of some times is what it takes.
    constexpr int kTimes = 8;
    std::chrono::nanoseconds shortest = std::chrono::nanoseconds::max();
    for (int i = 0; i < kTimes; ++i) {
        if (auto done = userfault->protect(begin, end); !done) return std::unexpected(done.error());
        const auto before = pages->count(files, &PageMapEntry::is_protected);
        shortest = std::min(shortest, pages->read_all());
        const auto after = pages->count(files, &PageMapEntry::is_protected);
        if (!before || !after) return std::unexpected((before ? after : before).error());
        if (*before != TrialPages::kCount || *after != 0)
            return fail(ErrorCode::kUnavailable, "the page map does not tell which pages are protected");
    }
    return shortest / TrialPages::kCount;
}

}  // namespace

Result<std::unique_ptr<Tracker>> make_rwp_tracker(Files& files) {
    const auto touch_cost = try_rwp(files);
    if (!touch_cost) return std::unexpected(touch_cost.error());
    auto pages = MarkedPages::make(files, [](PageMapEntry word) { return !word.is_protected(); });
    if (!pages) return std::unexpected(pages.error());
    return std::make_unique<RwpTracker>(files, *std::move(pages), *touch_cost);
}

}  // namespace memtide::agent
