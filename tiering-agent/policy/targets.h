#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/observe/processes.h"
#include "tiering-agent/observe/tiers.h"
#include "tiering-agent/policy/glob.h"

// What the operator wants of which processes, and which process that is. Pure.
namespace memtide::agent {

// Each does what those before it do, and more.
enum class TieringMode { kOff, kObserve, kMove };
std::string_view to_string(TieringMode mode);  // "off", "observe", "move"

// What becomes of huge pages of which few parts are touched.
enum class HugePageRule { kKeep, kSplit };
std::string_view to_string(HugePageRule rule);  // "keep", "split"

// A POSIX extended regular expression, to be found anywhere in a text. No back-references, so that no text
// makes it slow; at most 1024 characters, and counts that multiply to at most 1000. Thread safe.
class Regex {
  public:
    // kInvalidArgument says what is wrong with it.
    static Result<Regex> parse(const std::string& pattern);
    [[nodiscard]] bool is_found_in(const std::string& text) const;
    [[nodiscard]] const std::string& text() const { return text_; }
    friend bool operator==(const Regex& a, const Regex& b) { return a.text_ == b.text_; }

  private:
    struct Compiled;
    std::string text_;
    std::shared_ptr<const Compiled> compiled_;
};

// All that are given must hold, each for one of its alternatives. Nothing given: every process.
struct ProcessMatch {
    std::vector<Glob> cgroups{};  // of the process's own cgroup or of one above it
    std::vector<Glob> units{};
    std::vector<Glob> exes{};  // without a slash: of the file's name alone
    std::vector<Glob> commands{};
    std::vector<Regex> command_regexes{};
    std::vector<std::uint32_t> uids{};
    std::vector<int> pids{};

    [[nodiscard]] bool is_everything() const { return *this == ProcessMatch{}; }
    [[nodiscard]] bool matches(const Process& process) const;
    friend bool operator==(const ProcessMatch&, const ProcessMatch&) = default;
};

// A share of the fastest tier.
struct FastShare {
    std::optional<unsigned> percent{};  // of its capacity; else
    Bytes bytes{};

    [[nodiscard]] Bytes of(Bytes fast_capacity) const;
    friend bool operator==(const FastShare&, const FastShare&) = default;
};
std::string to_string(const FastShare& share);  // "25%", "4GiB"

// Mappings that stay where they are: all that is given must hold.
struct Exclusion {
    std::vector<VmaKind> kinds{};
    std::vector<Glob> names{};
    std::optional<VirtualRange> addresses{};  // mappings that have an address in it
    std::optional<Bytes> at_least{};
    std::optional<Bytes> at_most{};
    bool locked = false;
    bool own_policy = false;  // `mbind` in the configuration
    bool hugetlb = false;

    [[nodiscard]] bool matches(const Vma& vma) const;
    friend bool operator==(const Exclusion&, const Exclusion&) = default;
};
std::string to_string(const Exclusion& exclusion);  // "kind stack, at most 64KiB"

// What may leave the memory of this host, and how much of a nuisance that may be.
struct FarLimits {
    std::chrono::seconds after{600};  // untouched for so long
    // Share of time that processes of the cgroup wait for memory (`some` of its PSI).
    double pressure = 0.001;
    // Share of the working set that may come back in a minute. 0.2 % is what Google's warehouse-scale
    // far memory promises its jobs (Lagar-Cavilla et al., Software-Defined Far Memory, ASPLOS 2019).
    double refaults = 0.002;

    friend bool operator==(const FarLimits&, const FarLimits&) = default;
};

// docs/tiering.md, "Targets".
struct TieringTarget {
    std::string name{};
    ProcessMatch match{};
    bool children = true;
    TieringMode mode = TieringMode::kMove;  // no more than the mode of the whole
    unsigned weight = 100;
    std::optional<FastShare> min_fast{};
    std::optional<FastShare> max_fast{};
    std::vector<std::string> tiers{};  // by name; empty: all
    std::vector<Exclusion> exclude{};
    Bytes rate_limit{};     // per second; 0: none of its own
    double pressure = 0.1;  // share of the time that its processes may wait for memory while pages move
    HugePageRule huge_pages = HugePageRule::kKeep;
    bool hints = true;               // whether what its processes say of their memory counts
    std::optional<FarLimits> far{};  // nothing leaves unless it is given

    friend bool operator==(const TieringTarget&, const TieringTarget&) = default;
};

// How touches of pages are seen.
enum class TrackerChoice {
    kAuto,        // all ways that work here, the fitting one for each process
    kDamon,       // the kernel's data access monitor
    kSoftDirty,   // soft-dirty bits
    kSamples,     // samples that the processor takes
    kHintFaults,  // page faults of the kernel's NUMA balancing
    kRwp,         // read-write protection, of processes that have consented
};
// "auto", "damon", "soft-dirty", "samples", "hint-faults", "rwp"
std::string_view to_string(TrackerChoice choice);

struct TieringConfig {
    TieringMode mode = TieringMode::kOff;
    TrackerChoice tracker = TrackerChoice::kAuto;
    // Of one processor: what looking at pages may cost in the long run, and while things change.
    double processor_share = 0.01;
    double processor_share_changing = 0.2;
    // Of the time of those who are looked at: what that may cost them.
    double slowdown = 0.02;
    double slowdown_changing = 0.2;
    bool spread = true;  // where the fastest tier is the bottleneck
    // That may move pages at once, as far as that makes it faster; 0: a quarter of the processors, 8 at most.
    unsigned move_threads = 0;
    std::vector<TierOverride> tiers{};
    std::vector<TieringTarget> targets{};  // names are unique

    friend bool operator==(const TieringConfig&, const TieringConfig&) = default;
};

// --- Which target a process belongs to ---

enum class MembershipReason {
    kMatches,
    kFollowsParent,
    kMatchesNone,
    kKernelThread,  // from here on: never, whatever the targets say
    kInit,
    kAgent,
    kMemtide,
};

struct Membership {
    ProcessId process{};
    std::optional<std::size_t> target{};  // position among the targets
    MembershipReason reason = MembershipReason::kMatchesNone;
    int followed = 0;  // pid of the parent whose target it has

    friend bool operator==(const Membership&, const Membership&) = default;
};
// "matches target \"redis\"", "follows its parent 812, of target \"redis\"".
std::string explain(const Membership& membership, const std::vector<TieringTarget>& targets);

// The first target that a process matches, or its parent's when that stands earlier and has `children`. A
// process whose parent ended keeps the target that it followed the parent to, as long as `before`, the answer
// of the last call with the same targets, has it. Never in a target: kernel threads, pid 1, `agent_pid`, and
// Memtide's other daemons, by the name of their executable; their children are judged by themselves. The
// answer has one entry for each process, in the order of `processes`, which are ascending by pid.
std::vector<Membership> assign_targets(const std::vector<Process>& processes,
                                       const std::vector<TieringTarget>& targets, int agent_pid,
                                       const std::vector<Membership>& before = {});

// --- Whether a mapping may be moved ---

enum class StayReason {
    kSpecial,
    kDevice,
    kHugetlb,
    kLocked,
    kOwnPolicy,
    kFile,         // read-only, or shared: what the page cache has belongs to all who map it
    kExcluded,     // by the target
    kNotLookedAt,  // flags or policy are not known
};

struct Stay {
    StayReason reason = StayReason::kNotLookedAt;
    std::size_t exclusion = 0;  // of kExcluded: position in the target's list

    friend bool operator==(const Stay&, const Stay&) = default;
};

// Nothing when the target's mode, whatever it is, would not stand in the way of moving it. kNotLookedAt only
// when nothing else speaks against it: then it is worth to look.
std::optional<Stay> why_it_stays(const Vma& vma, const TieringTarget& target);
// A sentence for people.
std::string explain(const Stay& stay, const Vma& vma, const TieringTarget& target);

}  // namespace memtide::agent
