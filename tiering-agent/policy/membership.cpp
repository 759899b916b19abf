#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tiering-agent/policy/targets.h"

namespace memtide::agent {
namespace {

// As /proc/PID/comm shows names, up to 15 bytes, for executables that cannot be read.
constexpr std::size_t kCommLength = 15;
constexpr std::array<std::string_view, 4> kDaemons{"memtide-tiering-agent", "memtide-fabric-manager",
                                                   "memtide-memory-node", "memtide-cxl-emul"};

bool is_memtide(const Process& process) {
    const std::string_view exe = process.exe;
    if (exe.empty())
        return std::ranges::any_of(kDaemons, [&process](std::string_view daemon) {
            return process.comm == daemon.substr(0, kCommLength);
        });
    const std::string_view name = exe.substr(exe.rfind('/') + 1);
    return std::ranges::find(kDaemons, name) != kDaemons.end();
}

std::optional<MembershipReason> why_never(const Process& process, int agent_pid) {
    if (process.is_kernel_thread) return MembershipReason::kKernelThread;
    if (process.id.pid == 1) return MembershipReason::kInit;
    if (process.id.pid == agent_pid) return MembershipReason::kAgent;
    if (is_memtide(process)) return MembershipReason::kMemtide;
    return std::nullopt;
}

class Assignment {
  public:
    Assignment(const std::vector<Process>& processes, const std::vector<TieringTarget>& targets,
               int agent_pid, const std::vector<Membership>& before)
        : processes_(processes),
          targets_(targets),
          agent_pid_(agent_pid),
          before_(before),
          answer_(processes.size()),
          states_(processes.size(), State::kOpen) {}

    std::vector<Membership> run() {
        std::vector<std::size_t> line;
        for (std::size_t i = 0; i < processes_.size(); ++i) {
            // Up to an ancestor that is done, then back down. What seems its own ancestor, since a pid was
            // reused while /proc was read, ends the line.
            line.clear();
            for (std::optional<std::size_t> at = i; at && states_[*at] == State::kOpen; at = parent_of(*at)) {
                states_[*at] = State::kInLine;
                line.push_back(*at);
            }
            for (; !line.empty(); line.pop_back()) {
                answer_[line.back()] = judge(line.back());
                states_[line.back()] = State::kDone;
            }
        }
        return std::move(answer_);
    }

  private:
    enum class State : unsigned char { kOpen, kInLine, kDone };

    [[nodiscard]] std::optional<std::size_t> parent_of(std::size_t child) const {
        const Process& process = processes_[child];
        const auto found = std::ranges::lower_bound(processes_, process.parent, {},
                                                    [](const Process& one) { return one.id.pid; });
        if (found == processes_.end() || found->id.pid != process.parent) return std::nullopt;
        if (found->id.start_time > process.id.start_time) return std::nullopt;  // has the pid of the parent
        return static_cast<std::size_t>(found - processes_.begin());
    }

    // Takes the target of a process that it follows, when that stands before its own.
    void follow(Membership& member, std::size_t target, int pid) const {
        if (target >= targets_.size() || !targets_[target].children) return;
        if (member.target && *member.target <= target) return;
        member.target = target;
        member.reason = MembershipReason::kFollowsParent;
        member.followed = pid;
    }

    [[nodiscard]] Membership judge(std::size_t index) const {
        const Process& process = processes_[index];
        Membership member{.process = process.id};
        if (const auto never = why_never(process, agent_pid_)) {
            member.reason = *never;
            return member;
        }
        const auto own = std::ranges::find_if(
            targets_, [&process](const TieringTarget& target) { return target.match.matches(process); });
        if (own != targets_.end()) {
            member.target = static_cast<std::size_t>(own - targets_.begin());
            member.reason = MembershipReason::kMatches;
        }
        const auto parent = parent_of(index);
        if (parent && states_[*parent] == State::kDone && answer_[*parent].target)
            follow(member, *answer_[*parent].target, process.parent);
        const auto old = std::ranges::lower_bound(before_, process.id, {}, &Membership::process);
        if (old != before_.end() && old->process == process.id && old->target &&
            old->reason == MembershipReason::kFollowsParent && old->followed != process.parent)
            follow(member, *old->target, old->followed);
        return member;
    }

    const std::vector<Process>& processes_;
    const std::vector<TieringTarget>& targets_;
    int agent_pid_;
    const std::vector<Membership>& before_;
    std::vector<Membership> answer_;
    std::vector<State> states_;
};

}  // namespace

std::vector<Membership> assign_targets(const std::vector<Process>& processes,
                                       const std::vector<TieringTarget>& targets, int agent_pid,
                                       const std::vector<Membership>& before) {
    return Assignment(processes, targets, agent_pid, before).run();
}

std::string explain(const Membership& membership, const std::vector<TieringTarget>& targets) {
    const std::string name = membership.target && *membership.target < targets.size()
                                 ? targets[*membership.target].name
                                 : std::string("?");
    switch (membership.reason) {
        case MembershipReason::kMatches:
            return fmt::format("matches target \"{}\"", name);
        case MembershipReason::kFollowsParent:
            return fmt::format("follows its parent {}, of target \"{}\"", membership.followed, name);
        case MembershipReason::kMatchesNone:
            return "matches no target";
        case MembershipReason::kKernelThread:
            return "is a kernel thread: never touched";
        case MembershipReason::kInit:
            return "is pid 1: never touched";
        case MembershipReason::kAgent:
            return "is the tiering agent itself: never touched";
        case MembershipReason::kMemtide:
            return "is a daemon of Memtide: never touched";
    }
    return "?";
}

}  // namespace memtide::agent
