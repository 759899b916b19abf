#include "tiering-agent/policy/cold_pages.h"

#include <algorithm>

namespace memtide::agent {
namespace {

constexpr unsigned kMostReturns = 4;  // that are told apart: sixteen times `after`

std::uint8_t plus(std::uint8_t age, unsigned ticks) {
    return static_cast<std::uint8_t>(std::min(age + ticks, ColdPages::kAges - 1));
}

}  // namespace

void ColdPages::Histogram::add(const Histogram& other) {
    for (std::size_t i = 0; i < by_age.size(); ++i) by_age[i] += other.by_age[i];
    resident += other.resident;
    working_set += other.working_set;
}

std::uint64_t ColdPages::Histogram::cold() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : by_age) sum += count;
    return sum;
}

unsigned ColdPages::Histogram::age_of_coldest(std::uint64_t pages) const {
    unsigned lowest = kAges - 1;
    std::uint64_t sum = 0;
    for (unsigned age = kAges; age-- > 0;) {
        if (by_age[age] == 0) continue;
        lowest = age;
        sum += by_age[age];
        if (sum >= pages) break;
    }
    return lowest;
}

unsigned ColdPages::needed_age(const Page& page) { return kTicks << page.returns; }

// Of a huge page that is none any more each page is what it was.
void ColdPages::split(Group& group) { group.pages.assign(kPagesPerHuge, Page(group.pages.front())); }

void ColdPages::lose_trust(Group& group) const {
    if (!needs_probes_) return;
    group.trust = Trust::kLost;
    group.wait = 0;
    group.lost = static_cast<std::uint8_t>(std::min(group.lost + 1U, kMostReturns));
}

void ColdPages::advance(Group& group, unsigned ticks) const {
    group.wait = plus(group.wait, ticks);
    if (group.trust == Trust::kProbed && group.wait >= kTicks) group.trust = Trust::kFull;
    if (group.trust == Trust::kLost && group.wait >= kTicks << group.lost) group.trust = Trust::kNone;
    for (Page& page : group.pages) {
        if (page.out)
            page.age = plus(page.age, ticks);
        else if (!page.present)
            page = Page{};
        page.present = false;
    }
}

ColdPages::Returns ColdPages::note(const HeatMap& heat, unsigned ticks, std::span<const HintRange> hints) {
    HintCursor cursor(hints);
    for (auto& [number, group] : groups_) advance(group, ticks);
    Returns returns;
    heat.for_each([&](const HeatMap::Unit& unit) {
        Group& group = groups_[unit.page / kPagesPerHuge];
        if (group.pages.empty())
            group.pages.resize(unit.pages == 1 ? kPagesPerHuge : 1);
        else if (unit.pages == 1 && group.pages.size() == 1)
            split(group);
        else if (unit.pages != 1 && group.pages.size() != 1) {
            // The kernel has made one of them, and for that brought back what was out.
            out_ -= group.out;
            group.out = 0;
            group.pages.assign(1, Page{});
        }
        const std::size_t index = unit.pages == 1 ? unit.page % kPagesPerHuge : 0;
        Page& page = group.pages[index];
        note_page(group, page, unit, ticks, returns);
        if (!hints.empty() && cursor.of(unit.page, unit.pages) == Hint::kCold && unit.heat.recent() == 0)
            page.age = kAges - 1;
    });
    std::erase_if(groups_, [](const auto& entry) {
        return entry.second.out == 0 &&
               std::ranges::none_of(entry.second.pages, [](const Page& page) { return page.present; });
    });
    return returns;
}

void ColdPages::note_page(Group& group, Page& page, const HeatMap::Unit& unit, unsigned ticks,
                          Returns& returns) {
    const std::uint32_t weight = unit.pages;
    const bool is_new = page.tier == PageHeat::kNowhere || unit.windows < kLeastWindows;
    page.present = true;
    page.tier = unit.heat.tier() & 7U;
    if (page.out) {
        page.out = false;
        group.out = static_cast<std::uint16_t>(group.out - weight);
        out_ -= weight;
        returns.pages += weight;
        if (page.age < needed_age(page)) {
            returns.soon += weight;
            page.returns = std::min<unsigned>(page.returns + 1U, kMostReturns) & 7U;
            lose_trust(group);
        } else if (page.returns > 0) {
            page.returns = (page.returns - 1U) & 7U;
        }
        page.age = 0;
    } else {
        page.age = is_new || unit.heat.recent() > 0 ? std::uint8_t{0} : plus(page.age, ticks);
    }
}

void ColdPages::offered(const Group& group, std::uint8_t tier, std::vector<std::uint16_t>& into) const {
    into.clear();
    const bool is_huge = group.pages.size() == 1;
    if (needs_probes_ && !is_huge && (group.trust == Trust::kProbed || group.trust == Trust::kLost)) return;
    for (std::size_t i = 0; i < group.pages.size(); ++i) {
        const Page& page = group.pages[i];
        if (page.present && !page.out && page.tier == tier && page.age >= needed_age(page))
            into.push_back(static_cast<std::uint16_t>(i));
    }
    if (!needs_probes_ || is_huge || group.trust != Trust::kNone || into.size() <= kProbes) return;
    for (std::size_t i = 0; i < kProbes; ++i) into[i] = into[i * into.size() / kProbes];
    into.resize(kProbes);
}

ColdPages::Histogram ColdPages::histogram(std::uint8_t tier) const {
    Histogram sum;
    for (const auto& [number, group] : groups_) {
        const std::uint64_t weight = group.pages.size() == 1 ? kPagesPerHuge : 1;
        for (const Page& page : group.pages) {
            if (!page.present || page.out) continue;
            sum.resident += weight;
            if (page.age < kTicks) sum.working_set += weight;
        }
        offered(group, tier, offered_);
        for (const std::uint16_t i : offered_) sum.by_age[group.pages[i].age] += weight;
    }
    return sum;
}

void ColdPages::for_each(std::uint8_t tier, unsigned least_age, unsigned most_age,
                         const std::function<bool(const Unit&)>& visit) const {
    std::vector<std::uint16_t> indices;
    for (const auto& [number, group] : groups_) {
        offered(group, tier, indices);
        for (const std::uint16_t i : indices) {
            if (group.pages[i].age < least_age || group.pages[i].age > most_age) continue;
            const Unit unit{number * kPagesPerHuge + i, group.pages.size() == 1 ? kPagesPerHuge : 1};
            if (!visit(unit)) return;
        }
    }
}

void ColdPages::note_out(const Unit& unit) {
    const auto found = groups_.find(unit.page / kPagesPerHuge);
    if (found == groups_.end()) return;
    Group& group = found->second;
    Page& page = group.pages[group.pages.size() == 1 ? 0 : unit.page % kPagesPerHuge];
    if (page.out) return;
    page.out = true;
    page.age = 0;
    group.out = static_cast<std::uint16_t>(group.out + unit.pages);
    out_ += unit.pages;
    if (needs_probes_ && unit.pages == 1 && group.trust == Trust::kNone) {
        group.trust = Trust::kProbed;
        group.wait = 0;
    }
}

void ColdPages::note_kept(const Unit& unit) {
    const auto found = groups_.find(unit.page / kPagesPerHuge);
    if (found == groups_.end()) return;
    Page& page = found->second.pages[found->second.pages.size() == 1 ? 0 : unit.page % kPagesPerHuge];
    page.age = 0;
    page.returns = kMostReturns & 7U;
}

std::uint64_t ColdPages::out_from(std::uint64_t from, std::size_t most,
                                  std::vector<std::uint64_t>& into) const {
    std::size_t taken = 0;
    for (auto group = groups_.lower_bound(from / kPagesPerHuge); group != groups_.end(); ++group) {
        if (group->second.out == 0) continue;
        const std::uint64_t first = group->first * kPagesPerHuge;
        for (std::size_t i = 0; i < group->second.pages.size(); ++i) {
            if (!group->second.pages[i].out || first + i < from) continue;
            if (taken++ == most) return first + i;
            into.push_back(first + i);
        }
    }
    return 0;
}

void ColdPages::note_gone(std::uint64_t page) {
    const auto found = groups_.find(page / kPagesPerHuge);
    if (found == groups_.end()) return;
    Group& group = found->second;
    const bool is_huge = group.pages.size() == 1;
    Page& gone = group.pages[is_huge ? 0 : page % kPagesPerHuge];
    if (!gone.out) return;
    const unsigned weight = is_huge ? kPagesPerHuge : 1;
    group.out = static_cast<std::uint16_t>(group.out - weight);
    out_ -= weight;
    gone = Page{};
}

std::size_t ColdPages::memory() const {
    constexpr std::size_t kNode = sizeof(std::pair<std::uint64_t, Group>) + 4 * sizeof(void*);  // of the tree
    std::size_t bytes = sizeof *this + groups_.size() * kNode;
    for (const auto& [number, group] : groups_) bytes += group.pages.capacity() * sizeof(Page);
    return bytes;
}

}  // namespace memtide::agent
