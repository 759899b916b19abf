#include "tests/tiering-agent/policy/simulator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace memtide::agent {
namespace {

constexpr std::uint8_t kFast = 0;
constexpr std::uint8_t kSlow = 1;
constexpr std::uint64_t kFirstPage = 512 * 1000;

}  // namespace

Simulator::Simulator(const Machine& machine, std::size_t units, unsigned seed)
    : machine_(machine), random_(seed), rates_(units), is_fast_(units) {
    const std::uint64_t reserve = machine_.fast_pages / 50;
    for (std::size_t i = 0; i < units && fast_used_ + machine_.unit <= machine_.fast_pages - reserve; ++i) {
        is_fast_[i] = true;
        fast_used_ += machine_.unit;
    }
}

void Simulator::set_rates(std::vector<double> rates) { rates_ = std::move(rates); }

MoveLog::Time Simulator::clock() const {
    return MoveLog::Time(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(now_)));
}

void Simulator::look(double window) {
    std::vector<PageSeen> seen;
    seen.reserve(rates_.size() * machine_.unit);
    std::uniform_real_distribution<double> draw;
    touched_ = 0;
    touched_slow_ = 0;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
        const bool touched = draw(random_) < -std::expm1(-rates_[i] * window);
        touched_ += touched ? machine_.unit : 0;
        touched_slow_ += touched && !is_fast_[i] ? machine_.unit : 0;
        seen.insert(seen.end(), machine_.unit,
                    {.tier = is_fast_[i] ? kFast : kSlow, .touched = touched, .huge = machine_.unit > 1});
    }
    heat_.observe(kFirstPage, seen);
}

std::uint64_t Simulator::plan_and_move(double seconds) {
    log_.expire(clock());
    log_.set_rest(4 * pace_.window(), clock());
    const Space space{.id = 1, .heat = &heat_};
    const Pair tiers{.fast = kFast,
                     .slow = kSlow,
                     .fast_free = machine_.fast_pages - fast_used_,
                     .slow_free = 1U << 30,
                     .reserve = machine_.fast_pages / 50};
    ExchangeOptions options;
    options.most_pages = static_cast<std::uint64_t>(machine_.copied_per_second * seconds);
    options.certainty *= 1 + 4 * log_.to_and_fro_share();
    constexpr double kProbeEvery = 2;
    if (machine_.spreads && machine_.fast_touches > 0 && now_ >= probed_ + kProbeEvery) {
        probed_ = now_;
        spread_.note({.fast = fast_latency(), .slow = machine_.slow_ns});
    }
    options.most_fast = spread_.most_fast();
    const ExchangePlan plan = plan_exchange(std::span(&space, 1), tiers, options, &log_);
    spread_.set_now(plan.hit_before);
    const auto apply = [&](const std::vector<Move>& moves, std::uint8_t to) {
        for (const Move& move : moves) {
            is_fast_[(move.page - kFirstPage) / machine_.unit] = to == kFast;
            heat_.set_tier(move.page, to);
            log_.add(move.space, move.page, move.pages, to, clock());
        }
    };
    apply(plan.demotions, kSlow);
    apply(plan.promotions, kFast);
    fast_used_ = fast_used_ + plan.promoted_pages - plan.demoted_pages;
    return plan.promoted_pages + plan.demoted_pages;
}

double Simulator::hit() const {
    double fast = 0;
    for (std::size_t i = 0; i < rates_.size(); ++i) fast += is_fast_[i] ? rates_[i] : 0;
    return fast / std::accumulate(rates_.begin(), rates_.end(), 0.0);
}

double Simulator::fast_latency() const {
    if (machine_.fast_touches == 0) return machine_.fast_ns;
    const double all = std::accumulate(rates_.begin(), rates_.end(), 0.0);
    return machine_.fast_ns / (1 - std::min(hit() * all / machine_.fast_touches, 0.98));
}

double Simulator::oracle() const {
    std::vector<double> sorted = rates_;
    std::ranges::sort(sorted, std::greater{});
    const std::size_t fitting = std::min<std::size_t>(sorted.size(), machine_.fast_pages / machine_.unit);
    return std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(fitting), 0.0) /
           std::accumulate(sorted.begin(), sorted.end(), 0.0);
}

Simulator::Score Simulator::run(double seconds) {
    Score score;
    score.oracle = oracle();
    const double begins = now_;
    const std::uint64_t wasted = log_.wasted_pages();
    std::vector<std::pair<double, double>> course;
    double cost = 0;
    const auto pass = [&](double time) {
        course.emplace_back(now_ - begins, hit());
        score.regret += (score.oracle - course.back().second) * time;
        now_ += time;
    };
    while (now_ - begins < seconds) {
        const double window = std::chrono::duration<double>(pace_.window()).count();
        look(window);
        pass(window);
        const double look_cost = std::chrono::duration<double>(machine_.look_cost).count();
        const std::uint64_t moved = plan_and_move(1);
        pass(look_cost + static_cast<double>(moved) / machine_.copied_per_second);
        cost += look_cost;
        score.moved_pages += moved;
        pace_.note({.present_pages = rates_.size() * machine_.unit,
                    .touched_pages = touched_,
                    .touched_slow_pages = touched_slow_,
                    .fast_pages = machine_.fast_pages,
                    .moved_pages = moved,
                    .cost = machine_.look_cost,
                    .blur = machine_.look_cost});
        pass(std::chrono::duration<double>(pace_.rest()).count());
    }
    score.hit = hit();
    score.latency_ns = score.hit * fast_latency() + (1 - score.hit) * machine_.slow_ns;
    score.wasted_pages = log_.wasted_pages() - wasted;
    score.processor_share = cost / (now_ - begins);
    for (const auto& [time, was] : course)
        if (was < 0.95 * score.hit) score.recovered = time;
    return score;
}

std::vector<double> hot_set(std::size_t units, std::size_t first_hot, std::size_t hot, double share,
                            double total) {
    std::vector<double> rates(units, total * (1 - share) / double(units));
    for (std::size_t i = 0; i < hot; ++i) rates[(first_hot + i) % units] += total * share / double(hot);
    return rates;
}

std::vector<double> zipf(std::size_t units, std::size_t keys_per_unit, double exponent, double total,
                         unsigned seed) {
    std::vector<std::size_t> places(units * keys_per_unit);
    std::iota(places.begin(), places.end(), 0);
    std::mt19937_64 random(seed);
    std::ranges::shuffle(places, random);
    std::vector<double> rates(units);
    double sum = 0;
    for (std::size_t key = 0; key < places.size(); ++key) {
        const double popularity = std::pow(double(key + 1), -exponent);
        rates[places[key] / keys_per_unit] += popularity;
        sum += popularity;
    }
    for (double& rate : rates) rate *= total / sum;
    return rates;
}

std::vector<double> uniform(std::size_t units, double total) {
    return std::vector<double>(units, total / double(units));
}

}  // namespace memtide::agent
