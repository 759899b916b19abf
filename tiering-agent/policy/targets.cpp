#include "tiering-agent/policy/targets.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex.h>

namespace memtide::agent {
namespace {

std::string_view file_name(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool any_matches(const std::vector<Glob>& globs, std::string_view text) {
    return std::ranges::any_of(globs, [text](const Glob& glob) { return glob.matches(text); });
}

bool exe_matches(const Glob& glob, const std::string& exe) {
    if (exe.empty()) return false;
    return glob.matches(glob.text().find('/') == std::string::npos ? file_name(exe) : exe);
}

// "/a/b": of "/a/b", "/a" and "/".
bool cgroup_matches(const Glob& glob, std::string_view cgroup) {
    if (cgroup.empty()) return false;
    while (!glob.matches(cgroup)) {
        if (cgroup == "/") return false;
        const auto slash = cgroup.rfind('/');
        if (slash == std::string_view::npos) return false;
        cgroup = slash == 0 ? "/" : cgroup.substr(0, slash);
    }
    return true;
}

// `holds` for one of the alternatives, or there are none.
template <typename Alternative, typename Holds>
bool allows(const std::vector<Alternative>& alternatives, Holds holds) {
    return alternatives.empty() || std::ranges::any_of(alternatives, holds);
}

// The compiled expression has a copy of what is repeated for each time: "((a{99}){99}){99}" would take
// gigabytes.
constexpr std::size_t kMostRepetitions = 1000;
constexpr std::size_t kLongestRegex = 1024;

// The largest counts of all "{2,5}" of a pattern, multiplied; stops beyond kMostRepetitions.
std::size_t repetitions(std::string_view pattern) {
    std::size_t product = 1;
    for (auto at = pattern.find('{'); at != std::string_view::npos; at = pattern.find('{', at + 1)) {
        std::size_t most = 1;
        std::size_t number = 0;
        for (const char one : pattern.substr(at + 1, pattern.find('}', at) - at)) {
            const bool is_digit = one >= '0' && one <= '9';
            number = is_digit
                         ? std::min(number * 10 + static_cast<std::size_t>(one - '0'), kMostRepetitions + 1)
                         : 0;
            most = std::max(most, number);
        }
        product *= most;
        if (product > kMostRepetitions) break;
    }
    return product;
}

std::vector<std::string> texts_of(const std::vector<Glob>& globs) {
    std::vector<std::string> texts;
    texts.reserve(globs.size());
    for (const Glob& glob : globs) texts.push_back(glob.text());
    return texts;
}

}  // namespace

std::string_view to_string(TieringMode mode) {
    switch (mode) {
        case TieringMode::kOff:
            return "off";
        case TieringMode::kObserve:
            return "observe";
        case TieringMode::kMove:
            return "move";
    }
    return "?";
}

std::string_view to_string(HugePageRule rule) { return rule == HugePageRule::kSplit ? "split" : "keep"; }

std::string_view to_string(TrackerChoice choice) {
    switch (choice) {
        case TrackerChoice::kAuto:
            return "auto";
        case TrackerChoice::kDamon:
            return "damon";
        case TrackerChoice::kSoftDirty:
            return "soft-dirty";
        case TrackerChoice::kSamples:
            return "samples";
        case TrackerChoice::kHintFaults:
            return "hint-faults";
        case TrackerChoice::kRwp:
            return "rwp";
    }
    return "?";
}

struct Regex::Compiled {
    regex_t regex{};
    bool is_good = false;

    Compiled() = default;
    ~Compiled() {
        if (is_good) regfree(&regex);
    }
    Compiled(const Compiled&) = delete;
    Compiled& operator=(const Compiled&) = delete;
};

Result<Regex> Regex::parse(const std::string& pattern) {
    if (pattern.empty()) return fail(ErrorCode::kInvalidArgument, "a pattern must not be empty");
    if (pattern.size() > kLongestRegex)
        return fail(ErrorCode::kInvalidArgument, fmt::format("has more than {} characters", kLongestRegex));
    if (repetitions(pattern) > kMostRepetitions)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\": the counts in its {{}} multiply to more than {}", pattern,
                                kMostRepetitions));
    for (std::size_t at = 0; at + 1 < pattern.size(); ++at) {
        if (pattern[at] != '\\') continue;
        ++at;
        if (pattern[at] >= '1' && pattern[at] <= '9')
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("\"{}\": back-references (\\{}) are not supported", pattern, pattern[at]));
    }
    const auto compiled = std::make_shared<Compiled>();
    if (const int error = regcomp(&compiled->regex, pattern.c_str(), REG_EXTENDED | REG_NOSUB); error != 0) {
        std::array<char, 256> reason{};
        regerror(error, &compiled->regex, reason.data(), reason.size());
        return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\": {}", pattern, reason.data()));
    }
    compiled->is_good = true;
    Regex regex;
    regex.text_ = pattern;
    regex.compiled_ = compiled;
    return regex;
}

bool Regex::is_found_in(const std::string& text) const {
    return compiled_ && regexec(&compiled_->regex, text.c_str(), 0, nullptr, 0) == 0;
}

bool ProcessMatch::matches(const Process& process) const {
    return allows(pids, [&](int pid) { return pid == process.id.pid; }) &&
           allows(uids, [&](std::uint32_t uid) { return uid == process.uid; }) &&
           allows(units,
                  [&](const Glob& glob) { return !process.unit.empty() && glob.matches(process.unit); }) &&
           allows(exes, [&](const Glob& glob) { return exe_matches(glob, process.exe); }) &&
           allows(cgroups, [&](const Glob& glob) { return cgroup_matches(glob, process.cgroup); }) &&
           allows(commands, [&](const Glob& glob) { return glob.matches(process.command); }) &&
           allows(command_regexes, [&](const Regex& regex) { return regex.is_found_in(process.command); });
}

Bytes FastShare::of(Bytes fast_capacity) const {
    if (!percent) return std::min(bytes, fast_capacity);
    return {fast_capacity.value / 100 * *percent + fast_capacity.value % 100 * *percent / 100};
}

std::string to_string(const FastShare& share) {
    return share.percent ? fmt::format("{}%", *share.percent) : format_bytes(share.bytes);
}

bool Exclusion::matches(const Vma& vma) const {
    return allows(kinds, [&](VmaKind kind) { return kind == vma.kind; }) &&
           (names.empty() || any_matches(names, vma.name)) &&
           (!addresses || vma.range.overlaps(*addresses)) && (!at_least || vma.range.size() >= *at_least) &&
           (!at_most || vma.range.size() <= *at_most) && (!locked || (vma.flags && vma.flags->locked)) &&
           (!hugetlb || (vma.flags && vma.flags->hugetlb)) &&
           (!own_policy || (vma.policy && *vma.policy != "default"));
}

std::string to_string(const Exclusion& exclusion) {
    std::vector<std::string> parts;
    std::vector<std::string_view> kinds;
    kinds.reserve(exclusion.kinds.size());
    for (const VmaKind kind : exclusion.kinds) kinds.push_back(to_string(kind));
    if (!kinds.empty()) parts.push_back(fmt::format("kind {}", fmt::join(kinds, " or ")));
    if (!exclusion.names.empty())
        parts.push_back(fmt::format("name {}", fmt::join(texts_of(exclusion.names), " or ")));
    if (exclusion.addresses)
        parts.push_back(
            fmt::format("address {:#x}-{:#x}", exclusion.addresses->begin, exclusion.addresses->end));
    if (exclusion.at_least) parts.push_back(fmt::format("at least {}", format_bytes(*exclusion.at_least)));
    if (exclusion.at_most) parts.push_back(fmt::format("at most {}", format_bytes(*exclusion.at_most)));
    if (exclusion.locked) parts.emplace_back("locked");
    if (exclusion.own_policy) parts.emplace_back("mbind");
    if (exclusion.hugetlb) parts.emplace_back("hugetlb");
    return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace memtide::agent
