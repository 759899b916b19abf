#include "tiering-agent/policy/tiering_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>

#include "common/base/nearest.h"
#include "tiering-agent/observe/words.h"

namespace memtide::agent {
namespace {

// Smaller ones would not let one huge page pass.
constexpr Bytes kLeastRate = mebibytes(2);
constexpr unsigned kHighestNode = 65535;
constexpr unsigned kHighestWeight = 10'000;
constexpr unsigned kMostMoveThreads = 64;
constexpr std::uint64_t kHighestPid = 1 << 22;  // PID_MAX_LIMIT, include/linux/threads.h

// The choice whose name the value is; the first of them, and a complaint, when it is none.
template <typename Choice, std::size_t kCount>
Choice choose(const YamlValue& value, const std::array<Choice, kCount>& choices) {
    const std::string text = value.string();
    std::set<std::string, std::less<>> names;
    for (const Choice choice : choices) {
        if (text == to_string(choice)) return choice;
        names.emplace(to_string(choice));
    }
    const std::string_view meant = nearest_name(text, names);
    value.reject(fmt::format("\"{}\" is none of {}{}", text, fmt::join(names, ", "),
                             meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant)));
    return choices.front();
}

TieringMode read_mode(const YamlValue& value) {
    return choose(value, std::array{TieringMode::kOff, TieringMode::kObserve, TieringMode::kMove});
}

VmaKind read_kind(const YamlValue& value) {
    return choose(value, std::array{VmaKind::kAnonymous, VmaKind::kHeap, VmaKind::kStack, VmaKind::kFile,
                                    VmaKind::kShared, VmaKind::kSpecial, VmaKind::kDevice});
}

// A value, or a list of them.
std::vector<YamlValue> one_or_more(const YamlValue& value) {
    if (!value.is_list()) return {value};
    auto values = value.list();
    if (values.empty()) value.reject("must not be an empty list");
    return values;
}

void read_globs(const YamlMap& map, std::string_view key, Glob::Of of, std::vector<Glob>& into) {
    const auto value = map.get(key);
    if (!value) return;
    for (const YamlValue& one : one_or_more(*value)) {
        const std::string text = one.string();
        if (!one.is_sound()) continue;
        if (auto glob = Glob::parse(text, of))
            into.push_back(*std::move(glob));
        else
            one.reject(glob.error().message);
    }
}

void read_paths(const YamlMap& map, std::string_view key, bool file_names_too, std::string_view what,
                std::vector<Glob>& into) {
    read_globs(map, key, Glob::Of::kPath, into);
    const auto value = map.get(key);
    if (!value) return;
    for (const YamlValue& one : one_or_more(*value)) {
        if (!one.is_sound()) continue;
        const std::string text = one.string();
        const bool is_absolute = text.starts_with('/') || text.starts_with("**");
        const bool is_file_name = file_names_too && text.find('/') == std::string::npos;
        if (!is_absolute && !is_file_name) one.reject(fmt::format("\"{}\" must be {}", text, what));
        if (text.size() > 1 && text.ends_with('/'))
            one.reject(fmt::format("\"{}\" must not end with /", text));
    }
}

ProcessMatch read_match(const YamlValue& value, const UserLookup& users) {
    ProcessMatch match;
    const YamlMap map = value.map();
    read_paths(map, "cgroup", false,
               "a path below the root of cgroup v2, such as /system.slice/* (a unit goes to `unit`)",
               match.cgroups);
    read_paths(map, "exe", true, "the name of a file or an absolute path", match.exes);
    read_globs(map, "unit", Glob::Of::kText, match.units);
    for (const Glob& unit : match.units) {
        if (unit.text().find_first_of(".*") != std::string::npos) continue;
        map.get("unit")->reject(
            fmt::format("\"{0}\" has no suffix: write {0}.service or {0}.scope", unit.text()));
    }
    read_globs(map, "command", Glob::Of::kText, match.commands);
    if (const auto regexes = map.get("command_regex"))
        for (const YamlValue& one : one_or_more(*regexes)) {
            const std::string text = one.string();
            if (!one.is_sound()) continue;
            if (auto regex = Regex::parse(text))
                match.command_regexes.push_back(*std::move(regex));
            else
                one.reject(regex.error().message);
        }
    if (const auto uids = map.get("uid"))
        for (const YamlValue& one : one_or_more(*uids))
            match.uids.push_back(static_cast<std::uint32_t>(one.integer(0, 0xffff'fffe)));
    if (const auto names = map.get("user"))
        for (const YamlValue& one : one_or_more(*names)) {
            const std::string name = one.string();
            if (const auto uid = users(name))
                match.uids.push_back(*uid);
            else
                one.reject(fmt::format("this machine has no user \"{}\"", name));
        }
    if (const auto pids = map.get("pid"))
        for (const YamlValue& one : one_or_more(*pids))
            match.pids.push_back(static_cast<int>(one.integer(2, kHighestPid)));
    if (map.is_empty()) value.reject("is empty; leave `match` out to match every process");
    return match;
}

std::optional<FastShare> read_share(const YamlMap& map, std::string_view key) {
    const auto value = map.get(key);
    if (!value) return std::nullopt;
    const std::string text = value->string();
    if (!text.ends_with('%')) {
        if (!parse_bytes(text))
            value->reject(fmt::format("\"{}\" must be a share such as 25%, or a size such as 4GiB", text));
        return FastShare{.percent = std::nullopt, .bytes = parse_bytes(text).value_or(Bytes{})};
    }
    const auto percent = whole_number<unsigned>(std::string_view(text).substr(0, text.size() - 1));
    if (!percent || *percent > 100)
        value->reject(fmt::format("\"{}\" must be a whole number from 0% to 100%", text));
    return FastShare{.percent = percent.value_or(0), .bytes = {}};
}

void read_shares(const YamlMap& map, TieringTarget& target) {
    target.min_fast = read_share(map, "min_fast");
    target.max_fast = read_share(map, "max_fast");
    if (!target.min_fast || !target.max_fast) return;
    const bool are_alike = target.min_fast->percent.has_value() == target.max_fast->percent.has_value();
    const bool is_wrong =
        are_alike && (target.min_fast->percent ? *target.min_fast->percent > *target.max_fast->percent
                                               : target.min_fast->bytes > target.max_fast->bytes);
    if (is_wrong)
        map.get("min_fast")
            ->reject(fmt::format("min_fast {} is more than max_fast {}", to_string(*target.min_fast),
                                 to_string(*target.max_fast)));
}

// "0x7f0000000000-0x7f0000100000"
VirtualRange read_addresses(const YamlValue& value) {
    const std::string text = value.string();
    const auto dash = text.find('-');
    const auto number = [](std::string_view part) {
        return part.starts_with("0x") ? whole_number<std::uint64_t>(part.substr(2), 16) : std::nullopt;
    };
    const std::string_view view = text;
    const auto begin = number(view.substr(0, dash));
    const auto end = dash == std::string::npos ? std::nullopt : number(view.substr(dash + 1));
    if (begin && end && *begin < *end) return {*begin, *end};
    value.reject(
        fmt::format("\"{}\" must be a range such as 0x7f0000000000-0x7f0040000000, the end not in it", text));
    return {};
}

bool read_flag(const YamlMap& map, std::string_view key) {
    const auto value = map.get(key);
    if (!value) return false;
    if (!value->boolean() && value->is_sound())
        value->reject("can only be true: such memory is never moved, whether it is listed here or not");
    return true;
}

Exclusion read_exclusion(const YamlValue& value) {
    Exclusion exclusion;
    const YamlMap map = value.map();
    if (const auto kinds = map.get("kind"))
        for (const YamlValue& one : one_or_more(*kinds)) exclusion.kinds.push_back(read_kind(one));
    read_globs(map, "name", Glob::Of::kText, exclusion.names);
    if (const auto address = map.get("address")) exclusion.addresses = read_addresses(*address);
    if (const auto size = map.get("at_least")) exclusion.at_least = size->bytes();
    if (const auto size = map.get("at_most")) exclusion.at_most = size->bytes();
    exclusion.locked = read_flag(map, "locked");
    exclusion.own_policy = read_flag(map, "mbind");
    exclusion.hugetlb = read_flag(map, "hugetlb");
    if (exclusion.at_least && exclusion.at_most && *exclusion.at_least > *exclusion.at_most)
        map.get("at_least")
            ->reject(fmt::format("at_least {} is more than at_most {}", format_bytes(*exclusion.at_least),
                                 format_bytes(*exclusion.at_most)));
    if (map.is_empty()) value.reject("is empty, and would exclude everything; for that write `mode: off`");
    return exclusion;
}

bool is_name_by_rule(const std::string& name) {
    if (name == "fast" || name == "slow") return true;
    constexpr std::string_view kSlow = "slow-";
    return name.starts_with(kSlow) && whole_number<unsigned>(name.substr(kSlow.size())).value_or(0) >= 2;
}

void read_allowed_tiers(const YamlValue& value, const std::vector<TierOverride>& overrides,
                        std::vector<std::string>& into) {
    std::set<std::string, std::less<>> known;
    for (const TierOverride& tier : overrides) known.insert(tier.name);
    for (const YamlValue& one : one_or_more(value)) {
        const std::string name = one.string();
        const bool is_known = overrides.empty() ? is_name_by_rule(name) : known.contains(name);
        if (!is_known)
            one.reject(fmt::format("there is no tier \"{}\": {}", name,
                                   overrides.empty()
                                       ? "without `tiering.tiers` they are fast, slow, slow-2, ..."
                                       : fmt::format("known are {}", fmt::join(known, ", "))));
        if (std::ranges::find(into, name) != into.end())
            one.reject(fmt::format("\"{}\" stands here twice", name));
        into.push_back(name);
    }
}

Bytes read_rate(const YamlValue& value) {
    std::string text = value.string();
    if (text.ends_with("/s")) text.resize(text.size() - 2);
    const auto rate = parse_bytes(text);
    if (!rate) {
        value.reject(fmt::format("\"{}\" must be bytes per second such as 200MiB", text));
        return kLeastRate;
    }
    if (*rate < kLeastRate)
        value.reject(
            fmt::format("must be at least {}, one huge page a second; to move nothing write `mode: observe`",
                        format_bytes(kLeastRate)));
    return *rate;
}

// "1%", "0.5%": nothing, and a complaint, when it is none of those, or not in the bounds. `what` is a share
// of what.
std::optional<double> read_percent(const YamlValue& value, std::string_view what, double least, double most) {
    const std::string text = value.string();
    double percent = 0;
    const char* const end = text.data() + text.size() - (text.ends_with('%') ? 1 : 0);
    const auto [stop, failed] = std::from_chars(text.data(), end, percent);
    if (text.ends_with('%') && failed == std::errc{} && stop == end && percent >= least && percent <= most)
        return percent / 100;
    value.reject(
        fmt::format("\"{}\" must be a share of {} from {}% to {}%, such as 1%", text, what, least, most));
    return std::nullopt;
}

// true, false, or a map of limits.
std::optional<FarLimits> read_far(const YamlValue& value) {
    if (!value.is_map()) return value.boolean() ? std::optional(FarLimits{}) : std::nullopt;
    constexpr std::uint64_t kLeastAfter = 5'000;  // ms
    constexpr std::uint64_t kMostAfter = 24ULL * 3'600'000;
    FarLimits limits;
    const YamlMap map = value.map();
    if (const auto after = map.get("after")) {
        const std::uint64_t ms = after->milliseconds();
        if (ms >= kLeastAfter && ms <= kMostAfter)
            limits.after = std::chrono::seconds(ms / 1000);
        else if (after->is_sound())
            after->reject("must be from 5s to 24h: how long pages have to be untouched");
    }
    if (const auto pressure = map.get("pressure"))
        limits.pressure = read_percent(*pressure, "time", 0.01, 50).value_or(limits.pressure);
    if (const auto refaults = map.get("refaults"))
        limits.refaults =
            read_percent(*refaults, "the working set, a minute,", 0.01, 10).value_or(limits.refaults);
    if (map.is_empty()) value.reject("is empty; write `far: true` for what is sensible");
    return limits;
}

void read_time_share(const YamlMap& map, std::string_view key, double& into) {
    if (const auto value = map.get(key)) into = read_percent(*value, "time", 0.01, 100).value_or(into);
}

TieringTarget read_target(const YamlValue& value, const TieringConfig& config, const UserLookup& users,
                          std::size_t number) {
    const YamlMap map = value.map();
    TieringTarget target{.name = fmt::format("target-{}", number)};
    if (const auto name = map.get("name")) target.name = name->name();
    if (const auto match = map.get("match")) target.match = read_match(*match, users);
    if (const auto children = map.get("children")) target.children = children->boolean();
    if (const auto mode = map.get("mode")) target.mode = read_mode(*mode);
    target.mode = std::min(target.mode, config.mode);
    if (const auto weight = map.get("weight"))
        target.weight = static_cast<unsigned>(weight->integer(1, kHighestWeight));
    read_shares(map, target);
    if (const auto tiers = map.get("tiers")) read_allowed_tiers(*tiers, config.tiers, target.tiers);
    if (const auto exclude = map.get("exclude"))
        for (const YamlValue& one : exclude->list()) target.exclude.push_back(read_exclusion(one));
    if (const auto rate = map.get("rate_limit")) target.rate_limit = read_rate(*rate);
    read_time_share(map, "pressure", target.pressure);
    if (const auto rule = map.get("huge_pages"))
        target.huge_pages = choose(*rule, std::array{HugePageRule::kKeep, HugePageRule::kSplit});
    if (const auto hints = map.get("hints")) target.hints = hints->boolean();
    if (const auto far = map.get("far")) target.far = read_far(*far);
    return target;
}

void read_targets(const YamlValue& value, TieringConfig& config, const UserLookup& users) {
    const auto list = value.list();
    if (value.is_list() && list.empty())
        value.reject("is an empty list; leave it out for one target of every process");
    std::set<std::string> names;
    std::string catches_all;
    unsigned min_percent = 0;
    for (const YamlValue& one : list) {
        TieringTarget target = read_target(one, config, users, config.targets.size() + 1);
        if (!catches_all.empty())
            one.reject(fmt::format("target \"{}\" is never reached: \"{}\" before it matches every process",
                                   target.name, catches_all));
        if (one.is_map() && target.match.is_everything() && !one.map().get("match"))
            catches_all = target.name;
        if (!names.insert(target.name).second)
            one.reject(fmt::format("there is another target named \"{}\"", target.name));
        if (target.min_fast && target.min_fast->percent) {
            min_percent += *target.min_fast->percent;
            if (min_percent > 100)
                one.reject(fmt::format("with target \"{}\" the min_fast of all come to {}%", target.name,
                                       min_percent));
        }
        config.targets.push_back(std::move(target));
    }
}

// [0, 2], "0-2,5", or "rest".
void read_nodes_of(const YamlValue& value, TierOverride& tier) {
    if (value.is_list()) {
        for (const YamlValue& one : one_or_more(value))
            tier.nodes.insert(static_cast<int>(one.integer(0, kHighestNode)));
        return;
    }
    const std::string text = value.string();
    if (text == "rest") {
        tier.rest = true;
        return;
    }
    if (auto nodes = parse_number_list(text); nodes && !nodes->empty())
        tier.nodes = *std::move(nodes);
    else
        value.reject(fmt::format("\"{}\" must be nodes such as [0, 1] or 0-1, or rest", text));
}

void read_tiers(const YamlValue& value, TieringConfig& config) {
    const auto list = value.list();
    if (value.is_list() && list.empty()) value.reject("is an empty list; leave it out and tiers are found");
    for (const YamlValue& one : list) {
        const YamlMap map = one.map();
        TierOverride tier{.name = map.require("name").name()};
        const YamlValue nodes = map.require("nodes");
        read_nodes_of(nodes, tier);
        config.tiers.push_back(std::move(tier));
        // What two tiers contradict each other in is told where the second one stands.
        if (!one.is_sound() || !nodes.is_sound()) continue;
        if (const auto good = group_tiers({}, config.tiers); !good) {
            one.reject(good.error().message);
            config.tiers.pop_back();
        }
    }
}

}  // namespace

UserLookup system_users() {
    return [](const std::string& name) -> std::optional<std::uint32_t> {
        passwd entry{};
        passwd* found = nullptr;
        std::vector<char> texts(16384);
        if (getpwnam_r(name.c_str(), &entry, texts.data(), texts.size(), &found) != 0 || found == nullptr)
            return std::nullopt;
        return found->pw_uid;
    };
}

TieringConfig read_tiering(const YamlValue& tiering, const UserLookup& users) {
    TieringConfig config{.mode = TieringMode::kObserve};
    const YamlMap map = tiering.map();
    if (const auto mode = map.get("mode")) config.mode = read_mode(*mode);
    if (const auto tracker = map.get("tracker"))
        config.tracker = choose(
            *tracker, std::array{TrackerChoice::kAuto, TrackerChoice::kDamon, TrackerChoice::kSoftDirty,
                                 TrackerChoice::kSamples, TrackerChoice::kHintFaults, TrackerChoice::kRwp});
    read_time_share(map, "processor_share", config.processor_share);
    read_time_share(map, "processor_share_changing", config.processor_share_changing);
    read_time_share(map, "slowdown", config.slowdown);
    read_time_share(map, "slowdown_changing", config.slowdown_changing);
    if (const auto spread = map.get("spread")) config.spread = spread->boolean();
    if (const auto threads = map.get("move_threads"))
        config.move_threads = static_cast<unsigned>(threads->integer(1, kMostMoveThreads));
    if (const auto tiers = map.get("tiers")) read_tiers(*tiers, config);
    if (const auto targets = map.get("targets"))
        read_targets(*targets, config, users);
    else
        config.targets.push_back({.name = "all", .mode = config.mode});
    return config;
}

}  // namespace memtide::agent
