#include "tiering-agent/balance/balancer.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "tiering-agent/balance/checked_mover.h"
#include "tiering-agent/observe/processor_time.h"
#include "tiering-agent/observe/zones.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::uint64_t pages(Bytes bytes) { return bytes.value >> kPageShift; }

// So much room at least, where that is a small part of what is free on the tier.
void make_bounce(std::vector<NodeRoom>& rooms, std::uint64_t free) {
    constexpr std::uint64_t kBounce = std::uint64_t{2} * kPagesPerHuge;
    constexpr std::uint64_t kPart = 4;
    const auto roomiest = std::ranges::max_element(rooms, {}, &NodeRoom::free_pages);
    if (roomiest == rooms.end()) return;
    roomiest->free_pages = std::max(roomiest->free_pages, std::min(kBounce, free / kPart));
}

}  // namespace

Balancer::Balancer(const Parts& parts, BalanceOptions options)
    : parts_(parts),
      options_(with_costs(std::move(options))),
      processes_(parts.files),
      pace_(options_.pace),
      threads_(most_move_threads(options_.config)) {
    status_.tracker = fmt::format("{} ({})", parts_.tracker.name(), parts_.tracker.sees());
    status_.mode = options_.config.mode;
    for (const TieringTarget& target : options_.config.targets)
        status_.targets.push_back({.name = target.name});
    if (parts_.far == nullptr) return;
    FarKeeper::Options far;
    far.processor_share = options_.pace.processor_share_changing;
    far.interval = options_.far_every;
    far_.emplace(*parts_.far, parts_.files, far);
}

void Balancer::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        round(stop);
        rest(stop);
    }
}

void Balancer::rest(const std::stop_token& stop) {
    const auto until = steady_clock::now() + pace_.rest();
    while (!stop.stop_requested() && !has_new_config()) {
        const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
        if (left <= milliseconds(0)) return;
        questions_.answer_for(std::min(left, options_.glance_every), stop, Questions::Sleep::kLight);
        if (left <= options_.glance_every || stop.stop_requested()) continue;
        send_far(stop);
        Sentinel* const sentinel = parts_.tracker.sentinel();
        if (sentinel != nullptr && !pace_.is_changing() && glance(*sentinel, stop)) {
            log::debug("something changes", {});
            return pace_.wake();
        }
    }
}

// Whether it is time to look.
bool Balancer::glance(Sentinel& sentinel, const std::stop_token& stop) {
    constexpr double kPart = 0.5;  // of what looking may cost in the long run
    constexpr double kMatters = 0.005;
    std::vector<const Watch*> awake;
    for (const auto& [space, watch] : watches_)
        if (!watch.is_idle() && watch.present_pages() > 0) awake.push_back(&watch);
    (void)questions_.take_cost();  // of answers before
    const microseconds before = processor_time();
    const bool is_time = lookout_.is_time(
        sentinel, awake,
        {.window = pace_.window(),
         .budget = std::chrono::duration_cast<microseconds>(options_.glance_every *
                                                            (kPart * options_.pace.processor_share)),
         .matters = kMatters * double(fast_pages_),
         .sleep = [&](milliseconds time) { questions_.answer_for(time, stop, Questions::Sleep::kDeep); }});
    glances_ += processor_time() - before - questions_.take_cost() + parts_.tracker.take_kernel_time();
    return is_time;
}

void Balancer::round(const std::stop_token& stop) {
    const microseconds before = processor_time();
    (void)questions_.take_cost();  // of answers in the rest before
    ++rounds_;
    const auto now = steady_clock::now();
    if (!take_new_config() && now >= refresh_at_) {
        (void)refresh();
        refresh_at_ = now + options_.refresh_every;
    }
    begin_window();
    questions_.answer_for(parts_.tracker.duration(pace_.window()), stop, Questions::Sleep::kDeep);
    if (stop.stop_requested()) return;
    const Look look = end_window();
    moving_ = {};
    const std::uint64_t moved = exchange_all(stop);
    send_far(stop);
    decisions_.flush(steady_clock::now());
    const microseconds besides = parts_.tracker.take_kernel_time() + std::exchange(glances_, {});
    const microseconds cost = processor_time() - before - moving_ - questions_.take_cost() + besides;
    fast_pages_ = tiers_.tiers.empty() ? 0 : pages(tiers_.tiers.front().free);
    for (const auto& [space, watch] : watches_)
        if (!watch.pages_by_tier().empty()) fast_pages_ += watch.pages_by_tier()[0];
    if (moved > 0) lookout_.forget();
    const Pace::Round round{.present_pages = look.present_pages,
                            .touched_pages = look.touched_pages,
                            .touched_slow_pages = look.touched_slow_pages,
                            .is_cut = *look.all_touched_pages > 2 * look.touched_pages,
                            .fast_pages = fast_pages_,
                            .moved_pages = moved,
                            .is_even = is_even_,
                            .cost = cost,
                            .blur = parts_.tracker.is_sharp() ? microseconds(0) : cost - besides,
                            .disturbance = disturbance_};
    pace_.note(round);
    publish(round);
    const std::lock_guard lock(mutex_);
    status_.processor_time += processor_time() - before + besides + std::exchange(helped_, {});
}

// Those that ended, or cannot be looked at any more, are watched no longer.
void Balancer::for_each_due(const std::function<Result<>(Watch&)>& visit) {
    std::vector<std::pair<std::uint64_t, Error>> lost;
    for (auto& [space, watch] : watches_)
        if (is_due(watch)) {
            if (const auto done = visit(watch); !done) lost.emplace_back(space, done.error());
            questions_.answer_waiting();
        }
    for (const auto& [space, why] : lost) drop(space, why);
}

void Balancer::begin_window() {
    // More than can be watched at once take turns. Whose it is stays so to the end of the window, whoever is
    // lost.
    turns_ = watches_.empty() ? 1 : (watches_.size() - 1) / parts_.tracker.most_at_once() + 1;
    for_each_due([&](Watch& watch) {
        return watch.refresh(parts_.files, options_.config.targets[watch.target()], steady_clock::now());
    });
    // What a second of a change may cost, in parts after the size of each process.
    const auto budget = std::chrono::duration<double>(options_.pace.processor_share_changing);
    disturbance_ = {};
    std::uint64_t present_pages = 0;
    for (const auto& [space, watch] : watches_)
        if (is_due(watch)) present_pages += watch.present_pages();
    for_each_due([&](Watch& watch) {
        const microseconds disturbance = watch.disturbance(parts_.files);
        disturbance_ += disturbance;
        // Before the first look it is as large as all of them.
        const std::uint64_t own = watch.present_pages();
        const double share = own == 0 ? 1 : double(own) / double(present_pages);
        WindowWish wish{.length = pace_.window(),
                        .budget = std::chrono::duration_cast<microseconds>(budget * share),
                        .disturbance = disturbance};
        if (fast_pages_ > 0)
            wish.most_pages = static_cast<std::uint64_t>(double(Pace::wanted_pages(fast_pages_)) * share);
        return watch.begin(parts_.tracker, wish);
    });
}

Look Balancer::end_window() {
    Look sum;
    std::uint64_t all_touched_pages = 0;
    for_each_due([&](Watch& watch) -> Result<> {
        const auto look = watch.look(parts_.tracker, tier_of_node_, steady_clock::now());
        if (!look) return std::unexpected(look.error());
        sum.present_pages += look->present_pages;
        sum.touched_pages += look->touched_pages;
        sum.touched_slow_pages += look->touched_slow_pages;
        all_touched_pages += look->all_touched_pages.value_or(look->touched_pages);
        return {};
    });
    sum.all_touched_pages = all_touched_pages;
    return sum;
}

bool Balancer::is_due(const Watch& watch) const {
    constexpr std::uint64_t kIdleWindows = 4;
    if ((rounds_ + watch.space()) % turns_ != 0) return false;
    return !watch.is_idle() || look_at_all_in_ == rounds_ || (rounds_ + watch.space()) % kIdleWindows == 0;
}

TieringMode Balancer::mode_of(std::size_t target) const {
    return std::min(options_.config.mode, options_.config.targets[target].mode);
}

// What holds targets back, and where the fastest tier is the bottleneck.
void Balancer::look_around(Time now) {
    if (parts_.latency != nullptr && options_.config.spread && tiers_.tiers.size() > 1 && now >= probe_at_) {
        probe_at_ = now + options_.probe_every;
        probe();
    }
    std::vector<Restraint::Target> targets;
    targets.reserve(status_.targets.size());
    // Nobody else writes to the status.
    for (const auto& target : status_.targets)
        targets.push_back({target.cgroups.empty() ? std::string() : target.cgroups.front(),
                           target.promoted_pages + target.demoted_pages});
    restraint_.note(parts_.files, options_.config.targets, targets, spread_.loaded(), now);
}

void Balancer::probe() {
    const std::set<int> leaving = this->leaving();
    std::set<int> used;
    // Of a tier the fastest of its nodes.
    const auto latency_of = [&](const Tier& tier) {
        double lowest = 0;
        for (const int node : tier.nodes) {
            if (leaving.contains(node)) continue;
            used.insert(node);
            const auto latency = parts_.latency->measure(node);
            if (latency && (lowest == 0 || *latency < lowest)) lowest = *latency;
        }
        return lowest;
    };
    probed_ = {.fast = latency_of(tiers_.tiers[0]), .slow = latency_of(tiers_.tiers[1])};
    parts_.latency->keep_only(used);
    const double before = spread_.most_fast();
    spread_.set_now(hit_);
    spread_.note(probed_);
    if (spread_.most_fast() != before)
        log::info("the fastest tier is the bottleneck",
                  {{"most_fast", spread_.most_fast()}, {"fast_ns", probed_.fast}, {"slow_ns", probed_.slow}});
}

// Whether the target may use both tiers.
bool Balancer::takes_part(const TieringTarget& target, std::uint8_t fast) const {
    const auto may_use = [&](std::size_t tier) {
        return target.tiers.empty() ||
               std::ranges::find(target.tiers, tiers_.tiers[tier].name) != target.tiers.end();
    };
    return may_use(fast) && may_use(fast + 1U);
}

std::vector<Space> Balancer::spaces(std::uint8_t fast) const {
    // Shares of a target are divided between its processes by what they have.
    std::map<std::size_t, std::uint64_t> pages_of_target;
    for (const auto& [space, watch] : watches_) pages_of_target[watch.target()] += watch.present_pages();
    const Bytes capacity = tiers_.tiers.empty() ? Bytes{} : tiers_.tiers.front().capacity;
    double weights = 0;
    for (const auto& [target, pages_there] : pages_of_target)
        weights += options_.config.targets[target].weight;
    std::vector<Space> result;
    for (const auto& [space, watch] : watches_) {
        const TieringTarget& target = options_.config.targets[watch.target()];
        if (!takes_part(target, fast) || !watch.may_have(tiers_.tiers[fast].nodes) ||
            !watch.may_have(tiers_.tiers[fast + 1U].nodes))
            continue;
        // Who is only observed beside others makes no room for them; where nothing is moved at all, the plan
        // is for everybody to see.
        if (options_.config.mode == TieringMode::kMove && mode_of(watch.target()) != TieringMode::kMove)
            continue;
        const double share = double(watch.present_pages()) /
                             double(std::max<std::uint64_t>(pages_of_target[watch.target()], 1));
        const auto part_of = [&](const FastShare& limit) {
            return static_cast<std::uint64_t>(double(pages(limit.of(capacity))) * share);
        };
        Space one{.id = space, .heat = &watch.heat(), .weight = target.weight / 100.0};
        if (fast == 0 && target.min_fast) one.least_fast = part_of(*target.min_fast);
        if (fast == 0 && target.max_fast) one.most_fast = part_of(*target.max_fast);
        // By hints alone nobody gets more of the faster tier than is his by weight.
        one.hints = watch.hints().ranges();
        one.most_hinted = static_cast<std::uint64_t>(double(pages(tiers_.tiers[fast].capacity)) * share *
                                                     target.weight / weights);
        if (one.most_fast) one.most_hinted = std::min(one.most_hinted, *one.most_fast);
        result.push_back(one);
    }
    return result;
}

std::uint64_t Balancer::exchange_all(const std::stop_token& stop) {
    look_around(steady_clock::now());
    std::uint64_t moved = 0;
    for (std::uint8_t fast = 0; fast + 1U < tiers_.tiers.size() && fast + 1U < PageHeat::kTiers; ++fast)
        moved += exchange(fast, stop) + split_huge_pages(fast, stop);
    if (tiers_.tiers.size() > 1) join_huge_pages(stop);
    return moved;
}

std::optional<Balancer::Prepared> Balancer::prepare(std::uint8_t fast, Time now) {
    log_.expire(now);
    constexpr int kRestWindows = 4;
    log_.set_rest(kRestWindows * pace_.window(), now);
    // What is free has to be known as it is now: processes allocate.
    const auto usable = read_usable_pages(parts_.files);
    if (!usable) {
        log::warning("room in nodes cannot be read", {{"error", usable.error()}});
        return std::nullopt;
    }
    const std::set<int> leaving = this->leaving();
    const auto rooms = [&](std::size_t tier) {
        std::vector<NodeRoom> result;
        for (const int node : tiers_.tiers[tier].nodes)
            if (const auto found = usable->find(node); found != usable->end() && !leaving.contains(node))
                result.push_back({node, found->second});
        return result;
    };
    Prepared prepared;
    MoveJob& job = prepared.job;
    job.fast = rooms(fast);
    job.slow = rooms(fast + 1U);
    // Caches fill all that is free: where the slower tier has no room at all, the reserve is what there is,
    // and pages change places through a little of what the kernel keeps. It gets that back with each
    // promotion.
    const auto wanted =
        static_cast<std::uint64_t>(double(pages(tiers_.tiers[fast].capacity)) * options_.reserve);
    job.reserve = std::min(wanted, free_pages(job.fast) + free_pages(job.slow));
    make_bounce(job.slow, pages(tiers_.tiers[fast + 1U].free));
    prepared.pair = {.fast = fast,
                     .slow = static_cast<std::uint8_t>(fast + 1),
                     .fast_free = free_pages(job.fast),
                     .slow_free = free_pages(job.slow),
                     .reserve = job.reserve};
    constexpr std::uint64_t kMostPages = 1 << 18;  // 1 GiB: more than can be moved before the next plan
    prepared.options.most_pages = kMostPages;
    if (fast == 0) prepared.options.most_fast = spread_.most_fast();
    // The more of what was moved had to go back, the surer it has to be.
    prepared.options.certainty *= 1 + 4 * log_.to_and_fro_share();
    return prepared;
}

std::uint64_t Balancer::exchange(std::uint8_t fast, const std::stop_token& stop) {
    const auto now = steady_clock::now();
    auto prepared = prepare(fast, now);
    if (!prepared) return 0;
    auto& [job, pair, options] = *prepared;
    const std::vector<Space> taking_part = spaces(fast);
    ExchangePlan plan = plan_exchange(taking_part, pair, options, &log_);
    if (fast == 0) {
        hit_ = plan.hit_before;
        is_even_ = plan.is_even;
    }
    if (plan.is_empty()) return 0;

    const auto may_not = [&](const Move& move) {
        return mode_of(watches_.at(move.space).target()) != TieringMode::kMove;
    };
    const auto over = [&](bool up) {
        return [&, up](const Move& move) {
            return may_not(move) || !restraint_.spend(watches_.at(move.space).target(), up, move.pages);
        };
    };
    std::erase_if(plan.promotions, over(true));
    std::erase_if(plan.demotions, over(false));
    job.plan = &plan;
    job.threads = &threads_;
    CheckedMover mover(parts_.files, parts_.mover);
    for (const auto& [space, watch] : watches_) {
        job.pid_of_space[space] = watch.process().pid;
        mover.add(watch.process());
    }
    const auto deadline = steady_clock::now() + options_.longest_move;
    const microseconds planned = processor_time();
    std::map<std::size_t, DecisionLog::Exchange> by_target;
    const auto counts_of = [&](const Move& move) -> DecisionLog::Exchange& {
        return by_target[watches_.at(move.space).target()];
    };
    const MoveReport report = carry_out(
        job, mover,
        [&](const Move& move, bool promoted, int error) {
            const auto at = steady_clock::now();
            if (error != 0) {
                counts_of(move).failed_pages += move.pages;
                // That there was no room is not the page's fault.
                if (error != ENOMEM) log_.add_failure(move.space, move.page, at, error);
                return;
            }
            Watch& watch = watches_.at(move.space);
            const std::uint8_t to = promoted ? pair.fast : pair.slow;
            watch.heat().set_tier(move.page, to);
            log_.add(move.space, move.page, move.pages, to, at);
            auto& counts = counts_of(move);
            (promoted ? counts.promoted_pages : counts.demoted_pages) += move.pages;
        },
        [&] { return !stop.stop_requested() && steady_clock::now() < deadline; });
    moving_ += processor_time() - planned;
    helped_ += report.helped;
    log::debug("plan", {{"fast", tiers_.tiers[fast].name},
                        {"free", pair.fast_free},
                        {"reserve", pair.reserve},
                        {"even", plan.is_even},
                        {"to_demote", plan.demoted_pages},
                        {"to_promote", plan.promoted_pages}});
    for (auto& [target, counts] : by_target) {
        counts.target = options_.config.targets[target].name;
        counts.fast = tiers_.tiers[fast].name;
        counts.slow = tiers_.tiers[fast + 1U].name;
        counts.hit_before = plan.hit_before;
        counts.hit_after = plan.hit_after;
        decisions_.note(counts);
    }
    for (const std::uint64_t gone : report.gone) drop(gone, {ErrorCode::kNotFound, "it has ended"});
    const std::lock_guard lock(mutex_);
    status_.promoted_pages += report.promoted_pages;
    status_.demoted_pages += report.demoted_pages;
    for (const auto& [error, count] : report.failed_pages) status_.failed_pages[error] += count;
    for (const auto& [target, counts] : by_target) {
        status_.targets[target].promoted_pages += counts.promoted_pages;
        status_.targets[target].demoted_pages += counts.demoted_pages;
    }
    return report.promoted_pages + report.demoted_pages;
}

// What it costs is no part of looking and planning, as moves are none.
void Balancer::send_far(const std::stop_token& stop) {
    if (!far_) return;
    const microseconds before = processor_time();
    std::vector<FarProcess> processes;
    for (auto& [space, watch] : watches_)
        if (options_.config.targets[watch.target()].far)
            processes.push_back({.space = space,
                                 .process = watch.process(),
                                 .target = watch.target(),
                                 .cgroup = watch.cgroup(),
                                 .heat = &watch.heat(),
                                 .ranges = &watch.private_ranges(),
                                 .pages_by_tier = &watch.pages_by_tier(),
                                 .hints = watch.hints().ranges(),
                                 .sees_reads = watch.sees_reads(),
                                 .may_send = mode_of(watch.target()) == TieringMode::kMove});
    const auto now = steady_clock::now();
    far_->round(processes, options_.config.targets, now,
                [&] { return !stop.stop_requested() && steady_clock::now() < now + options_.longest_move; });
    moving_ += processor_time() - before;
}

void Balancer::publish(const Pace::Round& round) {
    // All that takes long before the lock: whoever asks for the status must not wait for it.
    std::uint64_t heat_bytes = 0;
    std::vector<BalanceStatus::OfTarget> now(options_.config.targets.size());
    for (auto& target : now) target.pages_by_tier.assign(tiers_.tiers.size(), 0);
    for (const auto& [space, watch] : watches_) {
        auto& target = now[watch.target()];
        ++target.processes;
        target.hot_pages += watch.hints().pages_of(Hint::kHot);
        target.cold_pages += watch.hints().pages_of(Hint::kCold);
        target.pinned_pages += watch.hints().pages_of(Hint::kPin);
        heat_bytes += watch.memory();
        for (std::size_t tier = 0; tier < target.pages_by_tier.size() && tier < watch.pages_by_tier().size();
             ++tier)
            target.pages_by_tier[tier] += watch.pages_by_tier()[tier];
    }
    const std::lock_guard lock(mutex_);
    if (far_) status_.far = far_->status();
    ++status_.rounds;
    status_.tiers = tiers_.tiers;
    status_.window = pace_.window();
    status_.rest = pace_.rest();
    status_.wasted_pages = log_.wasted_pages();
    status_.hit = hit_;
    status_.is_even = is_even_;
    status_.fast_ns = probed_.fast;
    status_.slow_ns = probed_.slow;
    status_.most_fast = spread_.most_fast();
    status_.move_threads = threads_.chosen();
    status_.heat_bytes = heat_bytes;
    for (std::size_t i = 0; i < now.size(); ++i) {
        auto& target = status_.targets[i];
        target.processes = now[i].processes;
        target.pace = restraint_.share(i);
        target.is_pressure = restraint_.is_pressure(i);
        target.hot_pages = now[i].hot_pages;
        target.cold_pages = now[i].cold_pages;
        target.pinned_pages = now[i].pinned_pages;
        target.pages_by_tier = std::move(now[i].pages_by_tier);
    }
    log::debug("round", {{"touched", round.touched_pages},
                         {"touched_slow", round.touched_slow_pages},
                         {"moved", round.moved_pages},
                         {"hit", status_.hit},
                         {"window_ms", pace_.window().count()},
                         {"rest_ms", pace_.rest().count()},
                         {"cost_us", round.cost.count()},
                         {"disturbance_us", round.disturbance.count()}});
}

std::set<int> Balancer::leaving() const {
    const std::lock_guard lock(mutex_);
    return leaving_;
}

void Balancer::set_leaving(std::set<int> nodes) {
    const std::lock_guard lock(mutex_);
    leaving_ = std::move(nodes);
}

BalanceStatus Balancer::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

}  // namespace memtide::agent
