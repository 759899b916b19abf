#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "tiering-agent/policy/heat.h"

namespace memtide::agent {

inline constexpr unsigned kPageShift = 12;
inline constexpr unsigned kPagesPerHuge = 512;
constexpr Bytes size_of_pages(std::uint64_t pages) { return Bytes{pages << kPageShift}; }

// What one look at a page tells.
struct PageSeen {
    std::uint8_t tier = PageHeat::kNowhere;
    std::uint8_t touched = 0;  // in how many of the windows
    bool huge = false;         // a part of a huge page; all 512 of it say so
    std::uint8_t windows = 1;  // that the look ends; 0: it tells only where the page is
};

// How warm the pages of one address space are, and how long ago they were seen touched. Three bytes a page
// where pages are small and present, a few a huge page or a hole: a sparse mapping costs what is in it.
// Addresses are page numbers (address >> kPageShift). Not thread safe.
class HeatMap {
  public:
    // How long ago is counted in ticks of a clock that whoever calls advance() chooses, up to so many.
    static constexpr unsigned kLongestUntouched = 200;

    // What is moved and ranked as one: a page, or a huge page.
    struct Unit {
        std::uint64_t page = 0;
        std::uint32_t pages = 1;
        std::uint32_t windows = 0;  // that its neighbourhood was observed for
        PageHeat heat;
        // Ticks since it was last seen touched, or came; kLongestUntouched: that many or more.
        std::uint8_t untouched = 0;
    };

    // So many ticks have passed since the last call. All that is known has to be observed (or forgotten)
    // between two calls.
    void advance(std::uint64_t ticks);

    // A window has passed over these pages, which begin at `page`. Pages of one call are 512 at most in each
    // aligned group of 512; what is seen of a group replaces what was known of where it lies.
    void observe(std::uint64_t page, std::span<const PageSeen> seen);
    // What windows have shown so far counts no more: the next ones decide anew.
    void restart();
    // They are in no window: unmapped, excluded or not to be looked at.
    void forget(std::uint64_t first, std::uint64_t end);
    // A move has put the unit that begins there into that tier.
    void set_tier(std::uint64_t page, std::uint8_t tier);

    // Units that are in some tier, by ascending address.
    template <typename Visit>
    void for_each(Visit visit) const {
        for (const auto& [number, group] : groups_) visit_units(number, group, visit);
    }
    // Likewise, those of the aligned group of kPagesPerHuge that the page is in.
    template <typename Visit>
    void for_each_around(std::uint64_t page, Visit visit) const {
        const auto group = groups_.find(page / kPagesPerHuge);
        if (group != groups_.end()) visit_units(group->first, group->second, visit);
    }
    [[nodiscard]] Unit at(std::uint64_t page) const;  // kNowhere when nothing is known of it

    // What it takes itself, in bytes.
    [[nodiscard]] std::size_t memory() const;

  private:
    using Tick = std::uint8_t;  // of `now_`, which goes around
    struct Pages {
        std::array<PageHeat, kPagesPerHuge> heat{};
        std::array<Tick, kPagesPerHuge> touched_at{};
    };
    struct Group {
        PageHeat whole;  // when `pages` is null: of a huge page, or of nothing
        std::uint16_t windows = 0;
        Tick touched_at = 0;
        std::unique_ptr<Pages> pages;
    };
    template <typename Visit>
    void visit_units(std::uint64_t number, const Group& group, Visit& visit) const {
        const std::uint64_t first = number * kPagesPerHuge;
        if (!group.pages) {
            if (group.whole.tier() != PageHeat::kNowhere)
                visit(Unit{first, kPagesPerHuge, group.windows, group.whole,
                           untouched_since(group.touched_at)});
            return;
        }
        for (unsigned i = 0; i < kPagesPerHuge; ++i)
            if (const PageHeat heat = group.pages->heat[i]; heat.tier() != PageHeat::kNowhere)
                visit(Unit{first + i, 1, group.windows, heat, untouched_since(group.pages->touched_at[i])});
    }
    void observe_group(Group& group, unsigned first, std::span<const PageSeen> seen, bool goes_on);
    void observe_unit(PageHeat& heat, unsigned touched, unsigned windows, unsigned windows_before);
    // Also keeps what is older than kLongestUntouched from seeming young when the clock has gone around.
    void note_touch(bool touched, bool is_new, Tick& touched_at) const;
    [[nodiscard]] std::uint8_t untouched_since(Tick tick) const {
        return static_cast<std::uint8_t>(
            std::min<unsigned>(static_cast<Tick>(now_ - tick), kLongestUntouched));
    }

    std::map<std::uint64_t, Group> groups_;  // by page / kPagesPerHuge
    std::uint64_t end_of_last_ = 0;          // page behind those that were observed last
    std::uint16_t windows_of_last_ = 0;      // that the look has brought their group so far
    std::uint32_t random_ = 2'463'534'242;   // xorshift; any start but 0 will do
    Tick now_ = 0;
};

}  // namespace memtide::agent
