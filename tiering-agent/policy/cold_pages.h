#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/hints/hint_ranges.h"
#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {

// How long pages of one process have been untouched, which of them are out, and which came back: whom to send
// to the far tier next. Three things keep it from sending what is in use:
//   * a page has to be untouched for so long (`after`), and twice as long for each time that it came back too
//     soon: before it was out for as long as it had been cold;
//   * where the tracker does not see reads, cold looks what is only read. So a few pages of each 2 MiB go
//     first, as *probes*, and the others follow only when none of these came back within `after`;
//   * what the far tier would not take is left alone for sixteen times `after`.
// Times are in ticks of after / kTicks. Two bytes a page beside those of the HeatMap. Not thread safe.
class ColdPages {
  public:
    static constexpr unsigned kTicks = 8;  // that `after` has
    static constexpr unsigned kAges = 256;
    static constexpr unsigned kProbes = 8;         // of each 2 MiB: under 2 %
    static constexpr unsigned kLeastWindows = 16;  // that have to have passed, however long they took

    // `needs_probes`: the tracker sees no reads.
    explicit ColdPages(bool needs_probes) : needs_probes_(needs_probes) {}
    void set_needs_probes(bool needs) { needs_probes_ = needs; }

    struct Returns {
        std::uint64_t pages = 0;
        std::uint64_t soon = 0;  // of these, too soon
    };
    // So many ticks have passed since the last call; often enough that PageHeat::recent() of what was touched
    // meanwhile is not 0 again: 4 windows. Answers what is present though it was out. What its process says
    // to be cold, and does not touch, is as old as can be at once.
    Returns note(const HeatMap& heat, unsigned ticks, std::span<const HintRange> hints = {});

    // Pages that may go, by how long they were untouched. `tier`: only those that lie there.
    struct Histogram {
        std::array<std::uint64_t, kAges> by_age{};
        std::uint64_t resident = 0;     // in whatever tier
        std::uint64_t working_set = 0;  // of these, touched within `after`

        void add(const Histogram& other);
        [[nodiscard]] std::uint64_t cold() const;
        // The highest age such that at least `pages` are as old; the lowest that has any when all together
        // are fewer.
        [[nodiscard]] unsigned age_of_coldest(std::uint64_t pages) const;
    };
    [[nodiscard]] Histogram histogram(std::uint8_t tier) const;
    struct Unit {
        std::uint64_t page = 0;
        std::uint32_t pages = 1;
    };
    // Those that may go and are so old, by ascending address; ends when `visit` says false.
    void for_each(std::uint8_t tier, unsigned least_age, unsigned most_age,
                  const std::function<bool(const Unit&)>& visit) const;

    // What became of a unit that for_each() gave.
    void note_out(const Unit& unit);
    void note_kept(const Unit& unit);

    // At most `most` pages that are thought to be out, from `from` on. Answers where to go on, 0 after the
    // last one. And what of them has turned out to be neither out nor present: unmapped.
    std::uint64_t out_from(std::uint64_t from, std::size_t most, std::vector<std::uint64_t>& into) const;
    void note_gone(std::uint64_t page);

    [[nodiscard]] std::uint64_t out_pages() const { return out_; }
    [[nodiscard]] std::size_t memory() const;

  private:
    struct Page {
        std::uint8_t age = 0;  // ticks; of a page that is out: since it is
        std::uint8_t returns : 3 = 0;
        bool out : 1 = false;
        bool present : 1 = false;
        std::uint8_t tier : 3 = PageHeat::kNowhere;
    };
    static_assert(sizeof(Page) == 2);
    enum class Trust : std::uint8_t { kNone, kProbed, kFull, kLost };
    struct Group {
        std::vector<Page> pages;  // 512, or one for a huge page
        Trust trust = Trust::kNone;
        std::uint8_t wait = 0;  // ticks since trust is what it is
        std::uint8_t lost = 0;  // times
        std::uint16_t out = 0;  // pages
    };
    static unsigned needed_age(const Page& page);
    static void split(Group& group);
    void note_page(Group& group, Page& page, const HeatMap::Unit& unit, unsigned ticks, Returns& returns);
    void lose_trust(Group& group) const;
    void advance(Group& group, unsigned ticks) const;
    // Indices of the group's pages that may go.
    void offered(const Group& group, std::uint8_t tier, std::vector<std::uint16_t>& into) const;

    bool needs_probes_;
    std::map<std::uint64_t, Group> groups_;  // by page / kPagesPerHuge
    std::uint64_t out_ = 0;
    mutable std::vector<std::uint16_t> offered_;
};

}  // namespace memtide::agent
