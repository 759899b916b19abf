// Balancer: which tiers there are, who is watched, and a new configuration.
#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "common/log/log.h"
#include "tiering-agent/balance/balancer.h"
#include "tiering-agent/balance/rivals.h"

namespace memtide::agent {

using std::chrono::steady_clock;

// What looking may cost is the configuration's to say.
BalanceOptions Balancer::with_costs(BalanceOptions options) {
    options.pace.processor_share = options.config.processor_share;
    options.pace.processor_share_changing = options.config.processor_share_changing;
    options.pace.slowdown = options.config.slowdown;
    options.pace.slowdown_changing = options.config.slowdown_changing;
    return options;
}

unsigned Balancer::most_move_threads(const TieringConfig& config) {
    constexpr unsigned kMost = 8;
    if (config.move_threads != 0) return config.move_threads;
    return std::clamp(std::thread::hardware_concurrency() / 4, 1U, kMost);
}

// False when the processes could not be read.
bool Balancer::refresh() {
    refresh_tiers();
    const bool read = refresh_watches();
    std::vector<std::string> notes = find_rivals(parts_.files);
    notes.insert(notes.end(), tiers_.notes.begin(), tiers_.notes.end());
    auto cgroups = cgroups_of_targets();
    // Nobody else writes to the status.
    if (notes != status_.notes)
        for (const std::string& note : notes) log::warning("tiering", {{"note", note}});
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < cgroups.size(); ++i) status_.targets[i].cgroups = std::move(cgroups[i]);
    status_.notes = std::move(notes);
    return read;
}

std::vector<std::vector<std::string>> Balancer::cgroups_of_targets() const {
    std::vector<std::map<std::string, std::uint64_t>> sizes(options_.config.targets.size());
    for (const auto& [space, watch] : watches_)
        if (!watch.cgroup().empty()) sizes[watch.target()][watch.cgroup()] += watch.rss().value;
    std::vector<std::vector<std::string>> answer;
    for (const auto& of_target : sizes) {
        std::vector<std::pair<std::uint64_t, std::string>> largest;
        largest.reserve(of_target.size());
        for (const auto& [cgroup, size] : of_target) largest.emplace_back(size, cgroup);
        std::ranges::sort(largest, std::ranges::greater{});
        if (largest.size() > BalanceStatus::OfTarget::kMostCgroups)
            largest.resize(BalanceStatus::OfTarget::kMostCgroups);
        auto& cgroups = answer.emplace_back();
        for (auto& [size, cgroup] : largest) cgroups.push_back(std::move(cgroup));
    }
    return answer;
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
        nodes.reserve(of.tiers.size());
        for (const Tier& tier : of.tiers) nodes.emplace_back(tier.nodes, tier.capacity);
        return nodes;
    };
    const bool changed = shape(*tiers) != shape(tiers_);
    tiers_ = *std::move(tiers);
    if (!changed) return;
    look_at_all_in_ = rounds_;
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
    spread_.forget();  // of other memory
    if (options_.on_tiers) options_.on_tiers(tiers_);
    if (auto done = parts_.tracker.refresh(); !done)
        log::warning("memory blocks cannot be read", {{"error", done.error()}});
}

bool Balancer::refresh_watches() {
    const auto processes = processes_.read();
    if (!processes) {
        log::warning("processes cannot be read", {{"error", processes.error()}});
        return false;
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
            watch.note((*processes)[i]);
            continue;
        }
        pace_.wake();  // nothing is known of it
        const std::uint64_t space = next_space_++;
        space_of_.emplace(member.process, space);
        watches_.emplace(space, Watch(space, member.process, *member.target))
            .first->second.note((*processes)[i]);
        log::debug("process is watched",
                   {{"pid", member.process.pid}, {"target", options_.config.targets[*member.target].name}});
    }
    std::vector<std::uint64_t> unwanted;
    for (const auto& [space, watch] : watches_)
        if (!wanted.contains(watch.process())) unwanted.push_back(space);
    for (const std::uint64_t space : unwanted)
        drop(space, {ErrorCode::kNotFound, "it has ended, or is to be watched no longer"});
    return true;
}

bool Balancer::has_new_config() const {
    const std::lock_guard lock(mutex_);
    return new_config_.has_value();
}

// True when there was one: then everything has been refreshed.
bool Balancer::take_new_config() {
    std::optional<NewConfig> taken;
    {
        const std::lock_guard lock(mutex_);
        taken = std::exchange(new_config_, std::nullopt);
    }
    if (!taken) return false;
    const TieringConfig before = std::exchange(options_.config, std::move(taken->config));
    options_ = with_costs(std::move(options_));
    pace_.set_options(options_.pace);
    restraint_.forget();
    if (!options_.config.spread) spread_.forget();
    if (options_.config.move_threads != before.move_threads)
        threads_ = ThreadChoice(most_move_threads(options_.config));
    const std::vector<std::uint64_t> lost = move_to_targets(before.targets);
    if (options_.config.tiers != before.tiers) tiers_ = {};  // so that they are seen to change
    // Whoever matches another target now stays watched.
    if (!refresh())
        for (const std::uint64_t space : lost)
            drop(space, {ErrorCode::kNotFound, "its target is there no more"});
    refresh_at_ = steady_clock::now() + options_.refresh_every;
    for (const auto& applied : taken->applied)
        if (applied) applied();
    return true;
}

// What belonged to a target belongs to the one that has its name now, until processes are looked at again.
// Answers the spaces whose target is there no more.
std::vector<std::uint64_t> Balancer::move_to_targets(const std::vector<TieringTarget>& before) {
    const auto& targets = options_.config.targets;
    const auto now = [&](std::size_t target) -> std::optional<std::size_t> {
        const auto found = std::ranges::find(targets, before[target].name, &TieringTarget::name);
        if (found == targets.end()) return std::nullopt;
        return static_cast<std::size_t>(found - targets.begin());
    };
    for (Membership& member : memberships_)
        if (member.target) member.target = now(*member.target);
    std::vector<std::uint64_t> lost;
    for (auto& [space, watch] : watches_) {
        const auto target = now(watch.target());
        if (!target) lost.push_back(space);
        watch.set_target(target.value_or(0));
    }
    std::vector<BalanceStatus::OfTarget> counts;
    for (const TieringTarget& target : targets) {
        const auto old = std::ranges::find(status_.targets, target.name, &BalanceStatus::OfTarget::name);
        counts.push_back(old == status_.targets.end() ? BalanceStatus::OfTarget{.name = target.name} : *old);
    }
    const std::lock_guard lock(mutex_);
    status_.targets = std::move(counts);
    status_.mode = options_.config.mode;
    return lost;
}

void Balancer::set_config(TieringConfig config, std::function<void()> applied) {
    {
        const std::lock_guard lock(mutex_);
        if (!new_config_) new_config_.emplace();
        new_config_->config = std::move(config);
        new_config_->applied.push_back(std::move(applied));
    }
    questions_.wake();
}

void Balancer::drop(std::uint64_t space, const Error& why) {
    const auto watch = watches_.find(space);
    if (watch == watches_.end()) return;
    log::debug("process is watched no more", {{"pid", watch->second.process().pid}, {"why", why}});
    log_.forget(space);
    space_of_.erase(watch->second.process());
    watches_.erase(watch);
}

}  // namespace memtide::agent
