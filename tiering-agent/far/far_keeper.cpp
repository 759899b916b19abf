#include "tiering-agent/far/far_keeper.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "common/log/log.h"
#include "tiering-agent/observe/processor_time.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;

// So often a page that is touched shows in its recent heat for certain.
constexpr unsigned kMostRounds = 4;

// Of the far tier, for what the kernel may have to send itself.
constexpr double kReserve = 0.1;
// A far tier in memory that saves less than this is none.
constexpr double kLeastGain = 0.2;
constexpr Bytes kTriedAtLeast = mebibytes(64);

// A tier that a target has less of than this is not used by it.
constexpr double kUsedShare = 0.01;

constexpr std::size_t kUnitsAtOnce = 1'024;
constexpr std::size_t kCheckedAtOnce = 4'096;

std::uint64_t pages(Bytes bytes) { return bytes.value >> kPageShift; }

bool lies_in(const std::vector<VirtualRange>& ranges, std::uint64_t page) {
    const std::uint64_t address = page << kPageShift;
    const auto after = std::ranges::upper_bound(ranges, address, {}, &VirtualRange::begin);
    return after != ranges.begin() && address < std::prev(after)->end;
}

std::string explain(const FarPace& pace, const FarLimits& limits) {
    switch (pace.state()) {
        case FarState::kNothingCold:
            return fmt::format("nothing that may go has been untouched for {} s", limits.after.count());
        case FarState::kSending:
            return fmt::format(
                "{} a minute at most",
                format_bytes({static_cast<std::uint64_t>(pace.pages_per_minute()) << kPageShift}));
        case FarState::kSlowed:
            return "over 2 % of what went lately came back too soon";
        case FarState::kComesBack:
            return fmt::format("{:.0f} pages came back within a minute, and {:.0f} may",
                               pace.returns_per_minute(), pace.returns_allowed());
        case FarState::kPressure:
            return "its processes have waited for memory";
        case FarState::kFull:
            return "there is no room for more";
    }
    return "?";
}

}  // namespace

FarKeeper::Group::Group(const FarLimits& its_limits)
    : limits(its_limits),
      pace({.after = its_limits.after, .pressure = its_limits.pressure, .refaults = its_limits.refaults}) {}

void FarKeeper::round(const std::vector<FarProcess>& processes, const std::vector<TieringTarget>& targets,
                      Time now, const std::function<bool()>& may_go_on) {
    if (std::ranges::none_of(targets, [](const TieringTarget& target) { return target.far.has_value(); })) {
        spaces_.clear();
        groups_.clear();
        status_ = {};
        return;
    }
    const microseconds before = processor_time();
    std::erase_if(spaces_, [&](const auto& entry) {
        return !std::ranges::binary_search(processes, entry.first, {}, &FarProcess::space);
    });
    std::erase_if(status_.targets, [&](const auto& entry) {
        return entry.first >= targets.size() || !targets[entry.first].far;
    });
    status_.tier = tier_.name();
    note(processes, targets, now);
    if (now >= step_at_) {
        const double seconds =
            stepped_at_ == Time{} ? 0 : std::chrono::duration<double>(now - stepped_at_).count();
        stepped_at_ = now;
        tier_of_target_ = slowest_tiers(processes);
        step(targets, seconds, may_go_on);
        const auto cost = processor_time() - before;
        step_at_ = now + std::max<Time::duration>(
                             options_.interval,
                             std::chrono::duration_cast<Time::duration>(cost / options_.processor_share));
        status_.memory_bytes = 0;
        for (const auto& [space, one] : spaces_) status_.memory_bytes += one.cold.memory();
    }
    for (auto& [key, group] : groups_) group.processes.clear();
    status_.processor_time += processor_time() - before;
}

// What the windows since have told, and which cgroups there are.
void FarKeeper::note(const std::vector<FarProcess>& processes, const std::vector<TieringTarget>& targets,
                     Time now) {
    std::set<GroupKey> there;
    for (const FarProcess& process : processes) {
        const FarLimits& limits = *targets[process.target].far;
        const GroupKey key{process.target, process.cgroup};
        there.insert(key);
        auto known = groups_.find(key);
        if (known != groups_.end() && known->second.limits != limits) {
            groups_.erase(known);
            known = groups_.end();
        }
        if (known == groups_.end()) known = groups_.emplace(key, Group(limits)).first;
        Group& group = known->second;
        group.processes.push_back(&process);
        group.pace.set_sees_reads(std::ranges::all_of(group.processes, &FarProcess::sees_reads));

        const auto [found, is_new] = spaces_.try_emplace(process.space);
        Space& space = found->second;
        space.cold.set_needs_probes(!process.sees_reads);
        if (is_new) space.noted_at = now;
        const Time::duration tick =
            std::chrono::duration_cast<Time::duration>(limits.after) / int{ColdPages::kTicks};
        const auto ticks = static_cast<unsigned>(
            std::min<std::int64_t>((now - space.noted_at) / tick, ColdPages::kAges - 1));
        if (++space.rounds < kMostRounds && ticks == 0) continue;
        space.rounds = 0;
        space.noted_at += ticks * tick;
        const ColdPages::Returns returns = space.cold.note(*process.heat, ticks, process.hints);
        group.since.returned += returns.pages;
        group.since.returned_soon += returns.soon;
        FarStatus::OfTarget& told = status_.targets[process.target];
        told.returned_pages += returns.pages;
        told.returned_soon_pages += returns.soon;
    }
    std::erase_if(groups_, [&](const auto& entry) { return !there.contains(entry.first); });
}

// Of each target, the slowest tier that it uses: what is faster has something to be cold beside.
std::map<std::size_t, std::uint8_t> FarKeeper::slowest_tiers(const std::vector<FarProcess>& processes) const {
    std::map<std::size_t, std::vector<std::uint64_t>> pages_of;
    for (const FarProcess& process : processes) {
        auto& sums = pages_of[process.target];
        sums.resize(PageHeat::kTiers);
        for (std::size_t i = 0; i < process.pages_by_tier->size() && i < sums.size(); ++i)
            sums[i] += (*process.pages_by_tier)[i];
    }
    std::map<std::size_t, std::uint8_t> slowest;
    for (const auto& [target, sums] : pages_of) {
        std::uint64_t all = 0;
        for (const std::uint64_t count : sums) all += count;
        for (std::size_t i = sums.size(); i-- > 0;) {
            if (double(sums[i]) < kUsedShare * double(all) || sums[i] == 0) continue;
            slowest[target] = static_cast<std::uint8_t>(i);
            break;
        }
    }
    return slowest;
}

// Pages that may still go there; 0 when there is none, or it is not worth it.
std::uint64_t FarKeeper::read_room() {
    const auto room = tier_.room();
    std::string why;
    if (!room)
        why = room.error().message;
    else if (room->kept >= kTriedAtLeast && room->gain() < kLeastGain)
        why = fmt::format("{} in memory hold {} of pages: they do not compress", format_bytes(room->taken),
                          format_bytes(room->kept));
    status_.room = room.value_or(FarRoom{});
    if (why.empty() != status_.unavailable.empty())
        log::info("far tier", {{"tier", tier_.name()}, {"state", why.empty() ? "there" : why}});
    status_.unavailable = why;
    if (!why.empty()) return 0;
    const auto reserve = static_cast<std::uint64_t>(kReserve * double(pages(room->capacity)));
    return pages(room->free) - std::min(pages(room->free), reserve);
}

void FarKeeper::step(const std::vector<TieringTarget>& targets, double seconds,
                     const std::function<bool()>& may_go_on) {
    std::uint64_t room = read_room();
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (!targets[i].far) continue;
        FarStatus::OfTarget& told = status_.targets[i];
        told.state = to_string(FarState::kNothingCold);
        told.why = "no process of it is watched";
        told.cold_pages = told.out_pages = 0;
    }
    std::map<std::size_t, std::uint64_t> most_resident;
    for (auto& [key, group] : groups_) {
        const auto& [target, cgroup] = key;
        const std::uint64_t most = budget(group, targets[target], cgroup, room, seconds);
        group.since = {};
        if (most > 0 && status_.unavailable.empty() && may_go_on()) {
            group.since.sent = send(group, target, most, may_go_on);
            room -= std::min(room, group.since.sent);
        }
        for (const FarProcess* const process : group.processes) {
            check_out(*process);
            status_.targets[target].out_pages += spaces_.at(process->space).cold.out_pages();
        }
        status_.targets[target].cold_pages += group.cold.cold();
        // Of many cgroups the largest is shown.
        if (const auto resident = group.cold.resident + 1; resident > most_resident[target]) {
            most_resident[target] = resident;
            tell(group, target, targets[target]);
        }
    }
}

std::uint64_t FarKeeper::budget(Group& group, const TieringTarget& target, const std::string& cgroup,
                                std::uint64_t room, double seconds) {
    const CgroupMemory now = read_cgroup_memory(files_, cgroup);
    group.cold = {};
    for (const FarProcess* const process : group.processes)
        if (const auto tier = tier_of_target_.find(process->target); tier != tier_of_target_.end())
            group.cold.add(spaces_.at(process->space).cold.histogram(tier->second));
    FarPace::Interval& interval = group.since;
    interval.seconds = seconds;
    if (group.before && seconds > 0) {
        if (now.stalled && group.before->stalled)
            interval.pressure =
                std::chrono::duration<double>(*now.stalled - *group.before->stalled).count() / seconds;
        // The kernel also counts what others sent: when that comes back, there is too little memory anyway.
        if (now.refaults && group.before->refaults && *now.refaults > *group.before->refaults)
            interval.returned = std::max(interval.returned, *now.refaults - *group.before->refaults);
    }
    const bool is_first = !group.before;
    group.before = now;
    interval.resident = group.cold.resident;
    interval.working_set = group.cold.working_set;
    interval.cold = group.cold.cold();
    interval.room = now.swap_left ? std::min(room, pages(*now.swap_left)) : room;
    if (is_first || seconds == 0) return 0;
    std::uint64_t most = group.pace.note(interval);
    if (target.rate_limit != Bytes{})
        most = std::min(most, static_cast<std::uint64_t>(double(pages(target.rate_limit)) * seconds));
    if (group.processes.empty() || !group.processes.front()->may_send) return 0;
    return most;
}

// The coldest first.
std::uint64_t FarKeeper::send(Group& group, std::size_t target, std::uint64_t most,
                              const std::function<bool()>& may_go_on) {
    const std::uint8_t tier = tier_of_target_.at(target);
    const unsigned last_age = group.cold.age_of_coldest(most);
    std::uint64_t asked = 0;
    std::uint64_t sent = 0;
    const auto send_between = [&](unsigned least, unsigned oldest) {
        for (const FarProcess* const process : group.processes) {
            std::vector<FarUnit> units;
            spaces_.at(process->space).cold.for_each(tier, least, oldest, [&](const ColdPages::Unit& unit) {
                if (asked + unit.pages > most) return false;
                if (!lies_in(*process->ranges, unit.page)) return true;
                asked += unit.pages;
                units.push_back({unit.page, unit.pages});
                return true;
            });
            for (std::size_t first = 0; first < units.size() && may_go_on(); first += kUnitsAtOnce) {
                const auto end = std::min(units.size(), first + kUnitsAtOnce);
                sent += send(*process, target,
                             {units.begin() + static_cast<std::ptrdiff_t>(first),
                              units.begin() + static_cast<std::ptrdiff_t>(end)});
            }
        }
    };
    if (last_age + 1 < ColdPages::kAges) send_between(last_age + 1, ColdPages::kAges - 1);
    send_between(last_age, last_age);
    log::debug("far", {{"target", target}, {"allowed", most}, {"sent", sent}, {"age", last_age}});
    return sent;
}

std::uint64_t FarKeeper::send(const FarProcess& process, std::size_t target,
                              const std::vector<FarUnit>& units) {
    const auto outcomes = tier_.page_out(process.process, units);
    if (!outcomes) {
        if (outcomes.error().code == ErrorCode::kUnavailable ||
            outcomes.error().code == ErrorCode::kPermission)
            status_.unavailable = outcomes.error().message;
        return 0;
    }
    ColdPages& cold = spaces_.at(process.space).cold;
    FarStatus::OfTarget& told = status_.targets[target];
    std::uint64_t sent = 0;
    for (std::size_t i = 0; i < units.size(); ++i) {
        const FarTier::Outcome& outcome = (*outcomes)[i];
        const ColdPages::Unit unit{units[i].page, units[i].pages};
        sent += outcome.taken;
        if (outcome.taken == unit.pages) {
            cold.note_out(unit);
            process.heat->forget(unit.page, unit.page + unit.pages);
        } else {
            told.kept_pages[outcome.error] += unit.pages - outcome.taken;
            cold.note_kept(unit);
        }
    }
    told.sent_pages += sent;
    return sent;
}

// What was unmapped while it was out is out no longer; a part of it each time.
void FarKeeper::check_out(const FarProcess& process) {
    Space& space = spaces_.at(process.space);
    if (space.cold.out_pages() == 0) return;
    std::vector<std::uint64_t> out;
    space.check_from = space.cold.out_from(space.check_from, kCheckedAtOnce, out);
    const auto where = tier_.find(process.process, out);
    if (!where) return;
    for (std::size_t i = 0; i < out.size(); ++i)
        if ((*where)[i] == FarTier::Where::kNowhere) space.cold.note_gone(out[i]);
}

void FarKeeper::tell(const Group& group, std::size_t target, const TieringTarget& wanted) {
    FarStatus::OfTarget& told = status_.targets[target];
    told.state = to_string(group.pace.state());
    told.why = explain(group.pace, *wanted.far);
    if (!group.processes.front()->may_send) {
        told.state = "observed";
        told.why = "its mode is observe";
    }
    if (!status_.unavailable.empty()) {
        told.state = "unavailable";
        told.why = status_.unavailable;
    }
}

}  // namespace memtide::agent
