#include "tiering-agent/balance/balancer.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "tiering-agent/balance/rivals.h"
#include "tiering-agent/observe/zones.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

microseconds processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) +
           std::chrono::duration_cast<microseconds>(std::chrono::nanoseconds(time.tv_nsec));
}

void sleep_for(milliseconds time, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any woken;
    std::unique_lock lock(mutex);
    woken.wait_for(lock, stop, time, [] { return false; });
}

std::uint64_t pages(Bytes bytes) { return bytes.value >> kPageShift; }

}  // namespace

Balancer::Balancer(const Parts& parts, BalanceOptions options)
    : parts_(parts), options_(std::move(options)), processes_(parts.files), pace_(options_.pace) {
    status_.tracker = fmt::format("{} ({})", parts_.tracker.name(), parts_.tracker.sees());
    status_.mode = options_.config.mode;
    for (const TieringTarget& target : options_.config.targets)
        status_.targets.push_back({.name = target.name});
    if (parts_.far == nullptr) return;
    FarKeeper::Options far;
    far.sees_reads = parts_.tracker.sees().find("reads") != std::string_view::npos;
    far.processor_share = options_.pace.processor_share_changing;
    far.interval = options_.far_every;
    far_.emplace(*parts_.far, parts_.files, far);
}

void Balancer::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        round(stop);
        sleep_for(pace_.rest(), stop);
    }
}

void Balancer::round(const std::stop_token& stop) {
    const microseconds before = processor_time();
    ++rounds_;
    const auto now = steady_clock::now();
    if (now >= refresh_at_) {
        refresh();
        refresh_at_ = now + options_.refresh_every;
    }
    begin_window();
    sleep_for(pace_.window(), stop);
    if (stop.stop_requested()) return;
    const Look look = end_window();
    moving_ = {};
    const std::uint64_t moved = exchange_all(stop);
    send_far(stop);
    const microseconds cost = processor_time() - before - moving_;
    std::uint64_t fast_pages = 0;
    for (const auto& [space, watch] : watches_)
        if (!watch.pages_by_tier().empty()) fast_pages += watch.pages_by_tier()[0];
    const Pace::Round round{
        .touched_pages = look.touched_pages,
        .touched_slow_pages = look.touched_slow_pages,
        .fast_pages = fast_pages + (tiers_.tiers.empty() ? 0 : pages(tiers_.tiers.front().free)),
        .moved_pages = moved,
        .is_even = is_even_,
        .cost = cost,
        .disturbance = std::chrono::duration_cast<microseconds>(faults_ * parts_.tracker.touch_cost())};
    pace_.note(round);
    publish(round);
    const std::lock_guard lock(mutex_);
    status_.processor_time += processor_time() - before;
}

void Balancer::refresh() {
    refresh_tiers();
    refresh_watches();
    std::vector<std::string> notes = find_rivals(parts_.files);
    notes.insert(notes.end(), tiers_.notes.begin(), tiers_.notes.end());
    const std::lock_guard lock(mutex_);
    if (notes != status_.notes)
        for (const std::string& note : notes) log::warning("tiering", {{"note", note}});
    status_.notes = std::move(notes);
}

void Balancer::refresh_tiers() {
    auto tiers = group_tiers(read_nodes(parts_.files), options_.config.tiers);
    if (!tiers) {
        log::warning("tiers cannot be told", {{"error", tiers.error()}});
        return;
    }
    // Also the memory of a node that stays comes and goes.
    const auto shape = [](const Tiers& of) {
        std::vector<std::pair<std::vector<int>, Bytes>> nodes;
        for (const Tier& tier : of.tiers) nodes.emplace_back(tier.nodes, tier.capacity);
        return nodes;
    };
    const bool changed = shape(*tiers) != shape(tiers_);
    tiers_ = *std::move(tiers);
    if (!changed) return;
    tier_of_node_.clear();
    for (std::size_t i = 0; i < tiers_.tiers.size() && i < PageHeat::kTiers; ++i) {
        const Tier& tier = tiers_.tiers[i];
        for (const int node : tier.nodes) {
            const auto index = static_cast<std::size_t>(node);
            if (tier_of_node_.size() <= index) tier_of_node_.resize(index + 1, PageHeat::kNowhere);
            tier_of_node_[index] = static_cast<std::uint8_t>(i);
        }
        log::info("tier", {{"tier", tier.name}, {"capacity", tier.capacity}, {"why", tier.why}});
    }
    if (auto done = parts_.tracker.refresh(); !done)
        log::warning("memory blocks cannot be read", {{"error", done.error()}});
}

void Balancer::refresh_watches() {
    const auto processes = processes_.read();
    if (!processes) {
        log::warning("processes cannot be read", {{"error", processes.error()}});
        return;
    }
    memberships_ = assign_targets(*processes, options_.config.targets, options_.agent_pid, memberships_);
    std::set<ProcessId> wanted;
    for (std::size_t i = 0; i < processes->size(); ++i) {
        const Membership& member = memberships_[i];
        if (!member.target || (*processes)[i].rss < options_.least_rss) continue;
        if (mode_of(*member.target) == TieringMode::kOff) continue;
        wanted.insert(member.process);
        const auto known = space_of_.find(member.process);
        if (known != space_of_.end()) {
            Watch& watch = watches_.at(known->second);
            watch.set_target(*member.target);
            watch.note_processor_time((*processes)[i].cpu_time);
            watch.set_cgroup((*processes)[i].cgroup);
            continue;
        }
        const std::uint64_t space = next_space_++;
        space_of_.emplace(member.process, space);
        Watch& watch = watches_.emplace(space, Watch(space, member.process, *member.target)).first->second;
        watch.set_cgroup((*processes)[i].cgroup);
        log::debug("process is watched",
                   {{"pid", member.process.pid}, {"target", options_.config.targets[*member.target].name}});
    }
    std::vector<std::uint64_t> unwanted;
    for (const auto& [space, watch] : watches_)
        if (!wanted.contains(watch.process())) unwanted.push_back(space);
    for (const std::uint64_t space : unwanted)
        drop(space, {ErrorCode::kNotFound, "it has ended, or is to be watched no longer"});
}

void Balancer::drop(std::uint64_t space, const Error& why) {
    const auto watch = watches_.find(space);
    if (watch == watches_.end()) return;
    log::debug("process is watched no more", {{"pid", watch->second.process().pid}, {"why", why}});
    log_.forget(space);
    space_of_.erase(watch->second.process());
    watches_.erase(watch);
}

// Those that ended, or cannot be looked at any more, are watched no longer.
void Balancer::for_each_due(const std::function<Result<>(Watch&)>& visit) {
    std::vector<std::pair<std::uint64_t, Error>> lost;
    for (auto& [space, watch] : watches_)
        if (is_due(watch))
            if (const auto done = visit(watch); !done) lost.emplace_back(space, done.error());
    for (const auto& [space, why] : lost) drop(space, why);
}

void Balancer::begin_window() {
    for_each_due([&](Watch& watch) {
        return watch.refresh(parts_.files, options_.config.targets[watch.target()], steady_clock::now());
    });
    faults_ = 0;
    for_each_due([&](Watch& watch) {
        faults_ += watch.new_faults(parts_.files);
        return parts_.tracker.begin(watch.process().pid);
    });
}

Look Balancer::end_window() {
    Look sum;
    for_each_due([&](Watch& watch) -> Result<> {
        const auto look = watch.look(parts_.tracker, tier_of_node_);
        if (!look) return std::unexpected(look.error());
        sum.present_pages += look->present_pages;
        sum.touched_pages += look->touched_pages;
        sum.touched_slow_pages += look->touched_slow_pages;
        return {};
    });
    return sum;
}

bool Balancer::is_due(const Watch& watch) const {
    constexpr std::uint64_t kIdleWindows = 4;
    return !watch.is_idle() || (rounds_ + watch.space()) % kIdleWindows == 0;
}

TieringMode Balancer::mode_of(std::size_t target) const {
    return std::min(options_.config.mode, options_.config.targets[target].mode);
}

// A target with a rate limit may move what it did not in the last second, half of it in each direction.
void Balancer::refill_rates(Time now) {
    const double passed = std::min(1.0, std::chrono::duration<double>(now - rates_filled_).count());
    rates_filled_ = now;
    for (std::vector<double>* const left : {&up_left_, &down_left_}) {
        left->resize(options_.config.targets.size());
        for (std::size_t i = 0; i < left->size(); ++i) {
            const double rate = double(pages(options_.config.targets[i].rate_limit)) / 2;
            // A huge page can be saved up for.
            (*left)[i] = std::min(std::max(rate, double{kPagesPerHuge}), (*left)[i] + rate * passed);
        }
    }
}

bool Balancer::spend(const Move& move, std::vector<double>& left) const {
    const std::size_t target = watches_.at(move.space).target();
    if (options_.config.targets[target].rate_limit == Bytes{}) return true;
    if (left[target] < move.pages) return false;
    left[target] -= move.pages;
    return true;
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
    const auto present_pages = [](const Watch& watch) {
        std::uint64_t sum = 0;
        for (const std::uint64_t count : watch.pages_by_tier()) sum += count;
        return sum;
    };
    for (const auto& [space, watch] : watches_) pages_of_target[watch.target()] += present_pages(watch);
    const Bytes capacity = tiers_.tiers.empty() ? Bytes{} : tiers_.tiers.front().capacity;
    std::vector<Space> result;
    for (const auto& [space, watch] : watches_) {
        const TieringTarget& target = options_.config.targets[watch.target()];
        if (!takes_part(target, fast)) continue;
        // Who is only observed beside others makes no room for them; where nothing is moved at all, the plan
        // is for everybody to see.
        if (options_.config.mode == TieringMode::kMove && mode_of(watch.target()) != TieringMode::kMove)
            continue;
        const double share = double(present_pages(watch)) /
                             double(std::max<std::uint64_t>(pages_of_target[watch.target()], 1));
        const auto part_of = [&](const FastShare& limit) {
            return static_cast<std::uint64_t>(double(pages(limit.of(capacity))) * share);
        };
        Space one{.id = space, .heat = &watch.heat(), .weight = target.weight / 100.0};
        if (fast == 0 && target.min_fast) one.least_fast = part_of(*target.min_fast);
        if (fast == 0 && target.max_fast) one.most_fast = part_of(*target.max_fast);
        result.push_back(one);
    }
    return result;
}

std::uint64_t Balancer::exchange_all(const std::stop_token& stop) {
    std::uint64_t moved = 0;
    for (std::size_t fast = 0; fast + 1 < tiers_.tiers.size() && fast + 1 < PageHeat::kTiers; ++fast)
        moved += exchange(static_cast<std::uint8_t>(fast), stop);
    return moved;
}

std::uint64_t Balancer::exchange(std::uint8_t fast, const std::stop_token& stop) {
    const auto now = steady_clock::now();
    log_.expire(now);
    constexpr int kRestWindows = 4;
    log_.set_rest(kRestWindows * pace_.window(), now);
    // What is free has to be known as it is now: processes allocate.
    const auto usable = read_usable_pages(parts_.files);
    if (!usable) {
        log::warning("room in nodes cannot be read", {{"error", usable.error()}});
        return 0;
    }
    const auto leaving = [this] {
        const std::lock_guard lock(mutex_);
        return leaving_;
    }();
    const auto rooms = [&](std::size_t tier) {
        std::vector<NodeRoom> result;
        for (const int node : tiers_.tiers[tier].nodes)
            if (const auto found = usable->find(node); found != usable->end() && !leaving.contains(node))
                result.push_back({node, found->second});
        return result;
    };
    MoveJob job;
    job.fast = rooms(fast);
    job.slow = rooms(fast + 1U);
    job.reserve = static_cast<std::uint64_t>(double(pages(tiers_.tiers[fast].capacity)) * options_.reserve);
    const Pair pair{.fast = fast,
                    .slow = static_cast<std::uint8_t>(fast + 1),
                    .fast_free = free_pages(job.fast),
                    .slow_free = free_pages(job.slow),
                    .reserve = job.reserve};
    ExchangeOptions options;
    constexpr std::uint64_t kMostPages = 1 << 18;  // 1 GiB: more than can be moved before the next plan
    options.most_pages = kMostPages;
    // The more of what was moved had to go back, the surer it has to be.
    options.certainty *= 1 + 4 * log_.wasted_share();
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
    refill_rates(now);
    const auto over = [&](std::vector<double>& left) {
        return [&](const Move& move) { return may_not(move) || !spend(move, left); };
    };
    std::erase_if(plan.promotions, over(up_left_));
    std::erase_if(plan.demotions, over(down_left_));
    job.plan = &plan;
    for (const auto& [space, watch] : watches_) job.pid_of_space[space] = watch.process().pid;
    const auto deadline = now + options_.longest_move;
    const microseconds planned = processor_time();
    std::map<std::size_t, std::pair<std::uint64_t, std::uint64_t>> by_target;
    const MoveReport report = carry_out(
        job, parts_.mover,
        [&](const Move& move, bool promoted, int error) {
            const auto at = steady_clock::now();
            if (error != 0) {
                // That there was no room is not the page's fault.
                if (error != ENOMEM) log_.add_failure(move.space, move.page, at);
                return;
            }
            Watch& watch = watches_.at(move.space);
            const std::uint8_t to = promoted ? pair.fast : pair.slow;
            watch.heat().set_tier(move.page, to);
            log_.add(move.space, move.page, move.pages, to, at);
            auto& counts = by_target[watch.target()];
            (promoted ? counts.first : counts.second) += move.pages;
        },
        [&] { return !stop.stop_requested() && steady_clock::now() < deadline; });
    moving_ += processor_time() - planned;
    std::uint64_t failed = 0;
    for (const auto& [error, count] : report.failed_pages) failed += count;
    log::debug("exchange", {{"tier", tiers_.tiers[fast].name},
                            {"free", pair.fast_free},
                            {"reserve", pair.reserve},
                            {"even", plan.is_even},
                            {"to_demote", plan.demoted_pages},
                            {"to_promote", plan.promoted_pages},
                            {"demoted", report.demoted_pages},
                            {"promoted", report.promoted_pages},
                            {"failed", failed}});
    for (const std::uint64_t gone : report.gone) drop(gone, {ErrorCode::kNotFound, "it has ended"});
    const std::lock_guard lock(mutex_);
    status_.promoted_pages += report.promoted_pages;
    status_.demoted_pages += report.demoted_pages;
    for (const auto& [error, count] : report.failed_pages) status_.failed_pages[error] += count;
    for (const auto& [target, counts] : by_target) {
        status_.targets[target].promoted_pages += counts.first;
        status_.targets[target].demoted_pages += counts.second;
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
                                 .may_send = mode_of(watch.target()) == TieringMode::kMove});
    const auto now = steady_clock::now();
    far_->round(processes, options_.config.targets, now,
                [&] { return !stop.stop_requested() && steady_clock::now() < now + options_.longest_move; });
    moving_ += processor_time() - before;
}

void Balancer::publish(const Pace::Round& round) {
    const std::lock_guard lock(mutex_);
    if (far_) status_.far = far_->status();
    ++status_.rounds;
    status_.tiers = tiers_.tiers;
    status_.window = pace_.window();
    status_.rest = pace_.rest();
    status_.wasted_pages = log_.wasted_pages();
    status_.hit = hit_;
    status_.is_even = is_even_;
    status_.heat_bytes = 0;
    for (auto& target : status_.targets) {
        target.processes = 0;
        target.pages_by_tier.assign(tiers_.tiers.size(), 0);
    }
    for (const auto& [space, watch] : watches_) {
        auto& target = status_.targets[watch.target()];
        ++target.processes;
        status_.heat_bytes += watch.heat().memory();
        for (std::size_t tier = 0; tier < target.pages_by_tier.size() && tier < watch.pages_by_tier().size();
             ++tier)
            target.pages_by_tier[tier] += watch.pages_by_tier()[tier];
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

void Balancer::set_leaving(std::set<int> nodes) {
    const std::lock_guard lock(mutex_);
    leaving_ = std::move(nodes);
}

BalanceStatus Balancer::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

}  // namespace memtide::agent
