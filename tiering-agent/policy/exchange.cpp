#include "tiering-agent/policy/exchange.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tiering-agent/policy/ranking.h"

namespace memtide::agent {
namespace ranking {
namespace {

// Pages of one load that is spread evenly differ as chance makes them: this is 1 then, and a great many pages
// leave little doubt of it.
constexpr double kEvenDispersion = 1.15;
constexpr std::uint64_t kMuchFree = 4;  // times the reserve
// Of all touches: an exchange that wins less of them is not worth its moves. The warmest and the coldest of
// many thousand pages always differ by more than chance makes two of them differ.
constexpr double kLeastGain = 1.0 / 5'000;
// The variance that rounding at random adds to that of the lasting share: a quarter of a step's square at
// each window, forgotten as the windows are.
constexpr double kRounding = 4.0 / (PageHeat::kMost * PageHeat::kMost);

constexpr std::uint64_t down_to(std::uint64_t pages, std::uint64_t unit) { return pages / unit * unit; }
constexpr std::uint64_t up_to(std::uint64_t pages, std::uint64_t unit) {
    return down_to(pages + unit - 1, unit);
}
// a - b, and not below 0.
constexpr std::uint64_t rest_of(std::uint64_t a, std::uint64_t b) { return a - std::min(a, b); }

// Mean and variance of the lasting shares, beside what chance makes of the latter.
class Evenness {
  public:
    void add(const HeatMap::Unit& unit) {
        const double share = unit.heat.lasting() / double{PageHeat::kMost};
        ++count_;
        sum_ += share;
        squares_ += share * share;
        windows_ += std::min(unit.windows, 2 * PageHeat::kLastingWindows);
    }
    [[nodiscard]] bool is_even() const {
        if (count_ < 2) return true;
        const double mean = sum_ / count_;
        const double variance = squares_ / count_ - mean * mean;
        const double chance =
            variance_of_heat(static_cast<unsigned>(std::lround(mean * PageHeat::kMost)), false, windows()) /
            (double{PageHeat::kMost} * PageHeat::kMost);
        return variance < kEvenDispersion * (chance + kRounding);
    }
    // On the average of those that count.
    [[nodiscard]] unsigned windows() const {
        return count_ > 0 ? static_cast<unsigned>(windows_ / count_) : 2 * PageHeat::kLastingWindows;
    }
    // Long enough to rank what differs little.
    [[nodiscard]] bool is_well_known() const { return windows_ >= count_ * PageHeat::kLastingWindows; }

  private:
    double count_ = 0;
    double sum_ = 0;
    double squares_ = 0;
    double windows_ = 0;
};

struct Census {
    Counts fast{};
    Counts slow{};
    Sureness sureness;
    Evenness evenness;
    double touches_fast = 0;
    double touches_slow = 0;
    std::vector<Ranking> rankings;        // of each space
    std::vector<std::uint64_t> may_fall;  // pages of it that are not its own to keep
    std::vector<std::uint64_t> may_rise;  // pages that it may still get
};

// What is said of a unit needs no time to be found out.
bool may_move(const HeatMap::Unit& unit, std::size_t kind, const Space& space, const MoveLog* log) {
    return (is_said(kind) || is_known(unit)) && (log == nullptr || !log->rests(space.id, unit.page));
}

Move move_of(const Space& space, const HeatMap::Unit& unit, std::size_t kind) {
    return {space.id, unit.page, unit.pages, static_cast<std::uint8_t>(heat_of(kind)), is_said(kind)};
}

// Of a space's pages so many at most, the coldest or the warmest.
void add_some(const Counts& of_space, bool coldest, std::uint64_t most, Counts& to) {
    for (const std::size_t kind : classes_by_rank(coldest)) {
        const std::uint64_t pages = down_to(std::min(of_space[kind], most), unit_of(kind));
        to[kind] += pages;
        most -= pages;
    }
}

Census take_census(std::span<const Space> spaces, const Pair& tiers, const MoveLog* log) {
    Census census;
    for (const Space& space : spaces) {
        const Ranking& ranking = census.rankings.emplace_back(space, tiers);
        Ranking::Pass pass(ranking);
        Counts fast{};
        Counts slow{};
        std::uint64_t fast_pages = 0;
        space.heat->for_each([&](const HeatMap::Unit& unit) {
            if (!ranking.takes_part(unit)) return;
            const bool is_fast = unit.heat.tier() == tiers.fast;
            if (is_fast) fast_pages += unit.pages;
            const auto kind = pass.kind_of(unit);
            if (is_known(unit)) {
                if (kind && !is_said(*kind)) census.evenness.add(unit);
                (is_fast ? census.touches_fast : census.touches_slow) += touches_of_heat(unit.heat.heat());
            }
            if (!kind || !may_move(unit, *kind, space, log)) return;
            (is_fast ? fast : slow)[*kind] += unit.pages;
            if (!is_said(*kind)) census.sureness.add(*kind, pass.variances());
        });
        census.may_fall.push_back(rest_of(fast_pages, space.least_fast));
        census.may_rise.push_back(space.most_fast ? rest_of(*space.most_fast, fast_pages) : UINT64_MAX);
        add_some(fast, true, census.may_fall.back(), census.fast);
        add_some(slow, false, census.may_rise.back(), census.slow);
    }
    return census;
}

// How much of each class goes, and what is still left of it.
class Takes {
  public:
    Takes(const Counts& there, bool coldest_first) : there_(there) {
        for (const std::size_t kind : classes_by_rank(coldest_first))
            if (there[kind] > 0) order_.push_back(kind);
    }
    // The first class of which something is left, from the `from`th on.
    [[nodiscard]] std::optional<std::size_t> next(std::size_t& from) const {
        while (from < order_.size() && left(order_[from]) == 0) ++from;
        return from < order_.size() ? std::optional(order_[from]) : std::nullopt;
    }
    [[nodiscard]] std::uint64_t left(std::size_t kind) const { return there_[kind] - taken_[kind]; }
    void take(std::size_t kind, std::uint64_t pages) {
        taken_[kind] += pages;
        all_ += pages;
    }
    [[nodiscard]] const Counts& taken() const { return taken_; }
    [[nodiscard]] std::uint64_t all() const { return all_; }

  private:
    Counts there_;
    Counts taken_{};
    std::vector<std::size_t> order_;
    std::uint64_t all_ = 0;
};

// The units of the classes that go, as many pages as were taken of each class.
std::vector<Move> collect(std::span<const Space> spaces, const Census& census, std::uint8_t tier,
                          const std::vector<std::uint64_t>& allowed, const Takes& takes, const MoveLog* log) {
    std::vector<Move> moves;
    Counts left = takes.taken();
    for (std::size_t i = 0; i < spaces.size() && takes.all() > 0; ++i) {
        const Space& space = spaces[i];
        std::uint64_t of_space = allowed[i];
        Ranking::Pass pass(census.rankings[i]);
        space.heat->for_each([&](const HeatMap::Unit& unit) {
            if (!census.rankings[i].takes_part(unit)) return;
            const auto kind = pass.kind_of(unit);
            if (unit.heat.tier() != tier || unit.pages > of_space) return;
            if (!kind || left[*kind] == 0 || !may_move(unit, *kind, space, log)) return;
            left[*kind] -= std::min<std::uint64_t>(left[*kind], unit.pages);
            of_space -= unit.pages;
            moves.push_back(move_of(space, unit, *kind));
        });
    }
    return moves;
}

std::uint64_t fast_pages_of(const Space& space, const Pair& tiers) {
    std::uint64_t pages = 0;
    space.heat->for_each(
        [&](const HeatMap::Unit& unit) { pages += unit.heat.tier() == tiers.fast ? unit.pages : 0; });
    return pages;
}

// Coldest of a space that has more of the faster tier than it may.
std::vector<Move> excess_of(const Space& space, std::uint64_t excess, std::uint64_t most, const MoveLog* log,
                            const Pair& tiers) {
    const Ranking ranking(space, tiers);
    Ranking::Pass pass(ranking);
    std::vector<Move> own;
    space.heat->for_each([&](const HeatMap::Unit& unit) {
        if (!ranking.takes_part(unit)) return;
        const auto kind = pass.kind_of(unit);
        if (kind && unit.heat.tier() == tiers.fast && may_move(unit, *kind, space, log))
            own.push_back(move_of(space, unit, *kind));
    });
    std::ranges::stable_sort(own, {}, [](const Move& move) { return rank_of(move); });
    std::vector<Move> moves;
    for (const Move& move : own) {
        if (excess == 0 || move.pages > most) break;
        excess -= std::min<std::uint64_t>(excess, move.pages);
        most -= move.pages;
        moves.push_back(move);
    }
    return moves;
}

// Decides how much of each class goes: makes the reserve, fills what is free beyond it, and exchanges what is
// surely warmer for what is colder.
class Exchange {
  public:
    Exchange(const Census& census, const Pair& tiers, const ExchangeOptions& options)
        : down(census.fast, true),
          up(census.slow, false),
          tiers_(tiers),
          options_(options),
          sureness_(census.sureness) {
        if (options.most_fast < 1)
            touches_left_ =
                options.most_fast * (census.touches_fast + census.touches_slow) - census.touches_fast;
        all_touches_ = census.touches_fast + census.touches_slow;
    }

    // More falls on the faster tier than should.
    [[nodiscard]] bool is_overloaded() const {
        constexpr double kMargin = 0.02;
        return touches_left_ < -kMargin * all_touches_;
    }
    void spread() {
        for (const std::size_t kind : classes_by_rank(false)) {
            if (is_said(kind) || heat_of(kind) < options_.least_heat) continue;
            const auto units = static_cast<std::uint64_t>(std::max(-touches_left_ / touches_of(kind), 0.0));
            const std::uint64_t pages = demotable(kind, units * unit_of(kind));
            down.take(kind, pages);
            touches_left_ += touches_of(kind, pages);
        }
    }

    void make_reserve() {
        // Half of it may be missing before it is worth a plan: what is free goes up and down by itself.
        if (tiers_.fast_free >= tiers_.reserve / 2) return;
        std::uint64_t lacking = rest_of(tiers_.reserve, tiers_.fast_free);
        while (lacking > 0) {
            const auto cold = down.next(coldest_);
            const std::uint64_t pages = cold ? demotable(*cold, lacking) : 0;
            if (pages == 0) return;
            down.take(*cold, pages);
            lacking = rest_of(lacking, pages);
        }
    }

    // Both: only what hints are about, when nothing else is to be gained.
    void fill(bool only_said) {
        room_ = rest_of(tiers_.fast_free, tiers_.reserve);
        if (room_ <= tiers_.reserve / 2) return;
        while (room_ > 0) {
            const auto hot = up.next(hottest_);
            if (!hot || heat_of(*hot) < options_.least_heat || (only_said && !is_said(*hot))) return;
            if (promote(*hot) == 0) return;
        }
    }

    // What is surely warmer for what is colder; nothing, where too little comes of it.
    void exchange(bool only_said) {
        const Takes down_before = down;
        const Takes up_before = up;
        double gain = 0;
        bool are_said = false;
        while (const auto pair = exchange_some(only_said)) {
            gain += pair->gain;
            are_said = are_said || pair->is_said;
        }
        if (are_said || gain >= kLeastGain * all_touches_) return;
        down = down_before;
        up = up_before;
    }

    Takes down;
    Takes up;

  private:
    struct Won {
        double gain = 0;  // touches
        bool is_said = false;
    };
    // Room that is left is used, too: a huge page needs it whole.
    std::optional<Won> exchange_some(bool only_said) {
        while (true) {
            const auto hot = up.next(hottest_);
            const auto cold = down.next(coldest_);
            if (!hot || !cold || heat_of(*hot) < options_.least_heat || rank_of(*hot) <= rank_of(*cold))
                return std::nullopt;
            if (only_said && !is_said(*hot) && !is_said(*cold)) return std::nullopt;
            if (!is_surely_warmer(*hot, *cold, sureness_, options_.certainty)) {
                // The next one, a little less warm or cold, may be known better.
                const bool is_hot_known = is_said(*hot) || (!is_said(*cold) && sureness_.of(*hot).known <
                                                                                   sureness_.of(*cold).known);
                ++(is_hot_known ? coldest_ : hottest_);
                continue;
            }
            const std::uint64_t wanted = std::min(up.left(*hot), down_to(budget() / 2, unit_of(*hot)));
            if (wanted == 0) return std::nullopt;
            const std::uint64_t pages = demotable(*cold, rest_of(wanted, room_));
            down.take(*cold, pages);
            room_ += pages;
            const std::uint64_t promoted = promote(*hot);
            if (promoted == 0 && pages == 0) return std::nullopt;
            return Won{.gain = touches_of(*hot, promoted) - touches_of(*cold, pages),
                       .is_said = is_said(*hot) || is_said(*cold)};
        }
    }
    [[nodiscard]] std::uint64_t budget() const { return rest_of(options_.most_pages, down.all() + up.all()); }
    // Of a class that goes down, as many pages as are wanted, or a part of a unit more.
    [[nodiscard]] std::uint64_t demotable(std::size_t kind, std::uint64_t wanted) const {
        const std::uint64_t slow_room = rest_of(tiers_.slow_free + up.all(), down.all());
        return std::min({down.left(kind), up_to(wanted, unit_of(kind)), down_to(budget(), unit_of(kind)),
                         down_to(slow_room, unit_of(kind))});
    }
    // As much of a class as there is room for: so many pages.
    std::uint64_t promote(std::size_t kind) {
        const std::uint64_t pages =
            down_to(std::min({room_, up.left(kind), budget(), bearable(kind)}), unit_of(kind));
        up.take(kind, pages);
        touches_left_ -= touches_of(kind, pages);
        room_ -= pages;
        return pages;
    }

    // Of a unit of that class.
    [[nodiscard]] static double touches_of(std::size_t kind) { return touches_of_heat(heat_of(kind)); }
    [[nodiscard]] static double touches_of(std::size_t kind, std::uint64_t pages) {
        const std::uint64_t units = pages / unit_of(kind);
        return double(units) * touches_of(kind);
    }
    // Pages of a class that the faster tier can take without being overloaded.
    [[nodiscard]] std::uint64_t bearable(std::size_t kind) const {
        if (options_.most_fast >= 1 || is_said(kind)) return UINT64_MAX;
        return static_cast<std::uint64_t>(std::max(touches_left_ / touches_of(kind), 0.0)) * unit_of(kind);
    }

    const Pair& tiers_;
    const ExchangeOptions& options_;
    double touches_left_ = 0;  // that may still come to the faster tier, where there is such a limit
    double all_touches_ = 0;
    const Sureness& sureness_;
    std::size_t coldest_ = 0;
    std::size_t hottest_ = 0;
    std::uint64_t room_ = 0;  // beyond the reserve
};

struct Part {
    ExchangePlan plan;
    double touches_fast = 0;
    double touches_slow = 0;
};

// Of spaces that exchange with each other.
Part plan_part(std::span<const Space> spaces, const Pair& tiers, const ExchangeOptions& options,
               const MoveLog* log) {
    const Census census = take_census(spaces, tiers, log);
    Part part{.plan = {}, .touches_fast = census.touches_fast, .touches_slow = census.touches_slow};
    // What is alike for its processes is not for whoever gave them weights.
    const auto weighs_otherwise = [&](const Space& space) { return space.weight != spaces.front().weight; };
    part.plan.is_even = census.evenness.is_even() && std::ranges::none_of(spaces, weighs_otherwise);
    Exchange decided(census, tiers, options);
    decided.make_reserve();
    // Where nothing tells pages apart yet, the ones to have first would be any. Where nothing ever will, a
    // little free memory is not worth it: what comes and goes by itself would be filled and made free again.
    const bool is_worth_it = census.evenness.is_well_known() && tiers.fast_free >= kMuchFree * tiers.reserve;
    if (decided.is_overloaded()) {
        decided.spread();
    } else {
        decided.fill(part.plan.is_even && !is_worth_it);
        decided.exchange(part.plan.is_even);
    }
    part.plan.demotions = collect(spaces, census, tiers.fast, census.may_fall, decided.down, log);
    part.plan.promotions = collect(spaces, census, tiers.slow, census.may_rise, decided.up, log);
    return part;
}

// A space that has all that it may have exchanges with itself; what is too much goes first.
Part plan_capped(Space space, std::uint64_t fast_pages, const Pair& tiers, const ExchangeOptions& options,
                 const MoveLog* log) {
    const std::uint64_t excess = rest_of(fast_pages, *space.most_fast);
    space.most_fast.reset();
    const Pair alone{
        .fast = tiers.fast, .slow = tiers.slow, .fast_free = 0, .slow_free = tiers.slow_free, .reserve = 0};
    Part part = plan_part(std::span(&space, 1), alone, options, log);
    if (excess == 0) return part;
    part.plan.promotions.clear();
    part.plan.demotions = excess_of(space, excess, std::min(options.most_pages, tiers.slow_free), log, tiers);
    return part;
}

void append(std::vector<Move>& to, const std::vector<Move>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

}  // namespace
}  // namespace ranking

double weighted_heat(double heat, double weight) {
    const double missed = 1 - std::min(heat / PageHeat::kMost, kHighestShare);
    return (1 - std::pow(missed, weight)) * PageHeat::kMost;
}

std::uint64_t pages_of(std::span<const Move> moves) {
    std::uint64_t pages = 0;
    for (const Move& move : moves) pages += move.pages;
    return pages;
}

ExchangePlan plan_exchange(std::span<const Space> spaces, const Pair& tiers, const ExchangeOptions& options,
                           const MoveLog* log) {
    std::vector<Space> others;
    std::vector<ranking::Part> parts;
    for (const Space& space : spaces) {
        const std::uint64_t fast_pages = space.most_fast ? ranking::fast_pages_of(space, tiers) : 0;
        if (space.most_fast && fast_pages >= *space.most_fast)
            parts.push_back(ranking::plan_capped(space, fast_pages, tiers, options, log));
        else
            others.push_back(space);
    }
    if (!others.empty() || parts.empty()) parts.push_back(ranking::plan_part(others, tiers, options, log));

    ExchangePlan plan;
    plan.is_even = std::ranges::all_of(parts, [](const ranking::Part& part) { return part.plan.is_even; });
    double touches_fast = 0;
    double touches = 0;
    for (const ranking::Part& part : parts) {
        ranking::append(plan.demotions, part.plan.demotions);
        ranking::append(plan.promotions, part.plan.promotions);
        touches_fast += part.touches_fast;
        touches += part.touches_fast + part.touches_slow;
    }
    const auto rank = [](const Move& move) { return ranking::rank_of(move); };
    std::ranges::stable_sort(plan.demotions, {}, rank);
    std::ranges::stable_sort(plan.promotions, std::ranges::greater{}, rank);
    plan.demoted_pages = pages_of(plan.demotions);
    plan.promoted_pages = pages_of(plan.promotions);
    double gained = 0;
    // What is gained by what hints say is not known.
    for (const Move& move : plan.promotions) gained += move.hinted ? 0 : touches_of_heat(move.heat);
    for (const Move& move : plan.demotions) gained -= move.hinted ? 0 : touches_of_heat(move.heat);
    if (touches > 0) {
        plan.hit_before = touches_fast / touches;
        plan.hit_after = std::clamp(plan.hit_before + gained / touches, 0.0, 1.0);
    }
    return plan;
}

}  // namespace memtide::agent
