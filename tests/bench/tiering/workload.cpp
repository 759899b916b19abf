#include "tests/bench/tiering/workload.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "common/base/bytes.h"

namespace memtide::bench {
namespace json = boost::json;

namespace {

// What the kernel and its page tables take of the fast node of a small guest, with what it keeps free.
constexpr std::uint64_t kKernelBytes = std::uint64_t{96} << 20;
// Of the slow node, for the agent, files and whoever copies.
constexpr std::uint64_t kSpareBytes = std::uint64_t{160} << 20;

struct BenchRow {
    std::string_view name;
    unsigned seconds;  // of load by default
    unsigned shift;    // seconds between changes of what is hot; 0: none
};
constexpr std::array<BenchRow, 10> kBenches{{
    {"tiering-gups", 120, 60},
    {"tiering-zipf", 90, 0},
    {"tiering-uniform", 90, 0},
    {"tiering-scan", 120, 60},
    {"tiering-strewn", 120, 0},
    {"tiering-btree", 120, 0},
    {"tiering-phases", 180, 30},
    {"tiering-several", 90, 0},
    {"tiering-redis", 120, 0},
    {"tiering-kill", 0, 0},
}};

const BenchRow& row_of_bench(const std::string& bench) {
    return *std::ranges::find(kBenches, bench, &BenchRow::name);
}

std::vector<std::string> load_words(const Workload& workload, const Programs& programs,
                                    std::initializer_list<std::string> pattern) {
    std::vector<std::string> words{programs.load,
                                   "--size",
                                   workload.size,
                                   "--hot",
                                   workload.hot,
                                   "--thp",
                                   workload.thp,
                                   "--seconds",
                                   std::to_string(workload.seconds),
                                   "--threads",
                                   std::to_string(workload.threads)};
    words.insert(words.end(), pattern);
    if (workload.reads) words.emplace_back("--reads");
    if (workload.shift_every > 0) {
        words.emplace_back("--shift-every");
        words.push_back(std::to_string(workload.shift_every));
    }
    return words;
}

std::vector<std::string> one_load(const Workload& workload, const Programs& programs) {
    const std::string exponent = fmt::format("{}", workload.exponent);
    const std::string keys = std::to_string(workload.keys_per_page);
    if (workload.bench == "tiering-gups")
        return load_words(workload, programs, {"--pattern", "gups", "--start-slow"});
    if (workload.bench == "tiering-scan")
        return load_words(workload, programs, {"--pattern", "scan", "--start-slow"});
    if (workload.bench == "tiering-strewn") return load_words(workload, programs, {"--pattern", "strewn"});
    if (workload.bench == "tiering-phases")
        return load_words(workload, programs,
                          {"--pattern", "gups,zipf,scan", "--start-slow", "--exponent", exponent});
    if (workload.bench == "tiering-btree")
        return load_words(workload, programs, {"--pattern", "btree", "--exponent", exponent});
    if (workload.bench == "tiering-zipf")
        return load_words(workload, programs,
                          {"--pattern", "zipf", "--exponent", exponent, "--keys-per-page", keys});
    return load_words(workload, programs, {"--pattern", "uniform"});
}

// Two loads whose hot sets do not fit into the fast node together, of which the agent is told to favour one
// three times (several.yaml), and an idle one that got the fast node first. An oracle that weighs accesses so
// has all of the heavy one's hot set there, and the light one's in what is left.
std::string several_script(const Workload& workload, const Programs& programs, unsigned limit_seconds) {
    return fmt::format(
        "free=$({load} --print-free 0) || exit\n"
        "{load} --name idle --idle --size 256MiB --hot 200MiB --seconds {longer} --thp {thp} "
        ">/run/idle.jsonl & idle=$!\n"
        "until grep -q start /run/idle.jsonl; do sleep 0.5; done\n"
        "one() {{ timeout -k 5 {limit} {load} --name $1 --pattern gups --size 256MiB --hot 200MiB "
        "--hot-share "
        "0.98 --thp {thp} --seconds {seconds} --fast-capacity $2 $3 $4 $5 >/run/$1.jsonl; }}\n"
        "one heavy {hot} {reads} $watch & heavy=$!\n"
        "one light $((free - {hot})) {reads} & light=$!\n"
        "wait $heavy && wait $light || {{ echo 'a load failed' >&2; exit 1; }}\n"
        "kill $idle; wait $idle || {{ echo 'the idle load failed' >&2; exit 1; }}\n"
        "for name in heavy light idle; do echo \"LOAD $name\"; cat /run/$name.jsonl; done\n",
        fmt::arg("load", shell_words({programs.load})), fmt::arg("longer", workload.seconds + 600),
        fmt::arg("thp", workload.thp), fmt::arg("limit", limit_seconds),
        fmt::arg("seconds", workload.seconds), fmt::arg("hot", std::uint64_t{200} << 20),
        fmt::arg("reads", workload.reads ? "--reads" : ""));
}

std::string kill_script(const Workload& workload, const Programs& programs, const AgentCommand& agent) {
    Workload endless = workload;
    endless.seconds = 86'400;
    endless.shift_every = 10;  // there is always something to move
    const auto load = load_words(endless, programs, {"--pattern", "gups", "--start-slow"});
    return fmt::format(
        "{} >/run/load.jsonl & load=$!\n"
        "until grep -q start /run/load.jsonl; do kill -0 $load || exit; sleep 0.5; done\n"
        "{} || exit\n"
        "kill $load; wait $load\n"
        "tail -n 1 /run/load.jsonl\n",
        shell_words(load),
        shell_words({programs.killer, "--kills", std::to_string(workload.kills), "--agent", agent.shell}));
}

// Figures of a run of one load, with the name of that behind them.
void add_named(Figures& all, const Figures& figures, const std::string& name) {
    for (const auto& [figure, value] : figures)
        if (figure.starts_with("hit") || figure.starts_with("oracle") || figure.starts_with("regret") ||
            figure.starts_with("convergence") || figure.starts_with("wasted") ||
            figure.starts_with("stall") || figure.starts_with("ops"))
            all[fmt::format("{}_{}", figure, name)] = value;
}

Result<Figures> read_several(const Workload& workload, std::string_view lines) {
    std::map<std::string, LoadRun> runs;
    while (!lines.empty()) {
        constexpr std::string_view kMark = "LOAD ";
        if (!lines.starts_with(kMark)) return fail(ErrorCode::kProtocol, "a line of no load");
        const std::size_t end = std::min(lines.size(), lines.find('\n'));
        const std::string name(lines.substr(kMark.size(), end - kMark.size()));
        lines.remove_prefix(std::min(lines.size(), end + 1));
        const std::size_t next = std::min(lines.size(), lines.find("LOAD "));
        auto run = parse_load_run(lines.substr(0, next));
        if (!run) return fail(run.error().code, name + ": " + run.error().message);
        runs[name] = std::move(*run);
        lines.remove_prefix(next);
    }
    if (!runs.contains("heavy") || !runs.contains("light") || !runs.contains("idle"))
        return fail(ErrorCode::kProtocol, "a load is missing");
    // What concerns the guest as a whole is in each; the agent is watched by the heavy one.
    const Figures heavy = figures_for(workload.bench, run_figures(runs.at("heavy"), workload.detect_seconds));
    Figures figures;
    for (const char* const name :
         {"bytes_moved", "failed_moves", "agent_cpu_percent", "agent_cpu_seconds", "agent_resident_mb"})
        if (const auto found = heavy.find(name); found != heavy.end()) figures.insert(*found);
    add_named(figures, heavy, "heavy");
    add_named(figures, figures_for(workload.bench, run_figures(runs.at("light"), workload.detect_seconds)),
              "light");
    double all = 0;
    for (const auto& [name, run] : runs) all += static_cast<double>(run.samples.back().fast_bytes);
    if (all > 0)
        for (const auto& [name, run] : runs)
            figures["fast_share_" + name] = static_cast<double>(run.samples.back().fast_bytes) / all;
    return figures;
}

void add_median_and_most(Figures& figures, const std::string& name, const std::vector<double>& values) {
    if (values.empty()) return;
    figures[name] = median(values);
    figures[name + "_max"] = std::ranges::max(values);
}

Result<Figures> read_kills(std::string_view lines) {
    Figures figures{{"kills_moving", 0}};
    std::vector<double> answers;
    std::vector<double> windows;
    bool ended = false;
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(lines.size(), line.size() + 1));
        if (line.empty()) continue;
        try {
            const json::value value = json::parse(line);
            const json::object& object = value.as_object();
            if (const auto* const life = object.if_contains("life")) {
                if (life->at("moved").as_bool()) figures["kills_moving"] += 1;
                if (!life->at("answered").is_null())
                    answers.push_back(life->at("answered").to_number<double>());
                if (!life->at("window").is_null()) windows.push_back(life->at("window").to_number<double>());
            } else if (const auto* const killer = object.if_contains("killer")) {
                figures["kills"] = killer->at("kills").to_number<double>();
                figures["hung"] = killer->at("hung").to_number<double>();
            } else {
                figures["lost"] = object.at("summary").at("data").as_string() == "intact" ? 0 : 1;
                ended = true;
            }
        } catch (const std::exception& error) {
            return fail(ErrorCode::kProtocol,
                        fmt::format("no line of a killer ({}): {}", error.what(), line));
        }
    }
    if (!ended || !figures.contains("kills"))
        return fail(ErrorCode::kProtocol, "the load or the killer did not come to its end");
    add_median_and_most(figures, "resume_seconds", answers);
    add_median_and_most(figures, "first_window_seconds", windows);
    return figures;
}

}  // namespace

const std::vector<std::string>& benches() {
    static const std::vector<std::string> kNames = [] {
        std::vector<std::string> names;
        names.reserve(kBenches.size());
        for (const BenchRow& row : kBenches) names.emplace_back(row.name);
        return names;
    }();
    return kNames;
}

// A few pages of each huge page where they are strewn.
std::string default_hot(const std::string& bench) { return bench == "tiering-strewn" ? "4MiB" : "64MiB"; }
unsigned default_seconds(const std::string& bench) { return row_of_bench(bench).seconds; }
unsigned default_shift(const std::string& bench) { return row_of_bench(bench).shift; }

Result<GuestPlan> guest_plan(const Workload& workload) {
    GuestPlan plan;
    plan.companion_ms = workload.companion_ms;
    plan.kernel = workload.kernel;
    plan.consent = workload.consent;
    const auto fast = parse_bytes(workload.fast);
    const auto slow = parse_bytes(workload.slow);
    const auto size = parse_bytes(workload.size);
    for (const auto* bytes : {&fast, &slow, &size})
        if (!*bytes) return std::unexpected(bytes->error());
    plan.fast = *fast;
    plan.slow = *slow;
    if (workload.ratio.empty()) return plan;
    unsigned slower = 0;
    const std::string_view digits =
        std::string_view(workload.ratio).substr(std::min<std::size_t>(2, workload.ratio.size()));
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), slower);
    if (!workload.ratio.starts_with("1:") || error != std::errc() || end != digits.end() || slower < 1 ||
        slower > 64)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("--ratio: \"{}\" is not 1:1 to 1:64, fast to slow", workload.ratio));
    const auto whole = [](std::uint64_t bytes) { return mebibytes((bytes / (1 << 20) + 15) / 16 * 16); };
    plan.fast = whole(size->value / (slower + 1) + kKernelBytes);
    plan.slow = whole(size->value / (slower + 1) * slower + kSpareBytes);
    return plan;
}

Result<std::string> workload_script(const Workload& workload, const Programs& programs,
                                    const AgentCommand& agent, unsigned limit_seconds) {
    if (workload.bench == "tiering-several") return several_script(workload, programs, limit_seconds);
    if (workload.bench == "tiering-kill") return kill_script(workload, programs, agent);
    std::vector<std::string> words = one_load(workload, programs);
    if (workload.bench == "tiering-redis")
        words = {programs.redis,
                 "--workload",
                 workload.ycsb,
                 "--size",
                 workload.size,
                 "--seconds",
                 std::to_string(workload.seconds),
                 "--exponent",
                 fmt::format("{}", workload.exponent)};
    return watched_load(words, workload.consent, limit_seconds);
}

std::string settings_text(const Workload& workload) {
    return fmt::format(
        "thp={} fast={} slow={} ratio={} kernel={} size={} hot={} exponent={} keys={} reads={} consent={} "
        "threads={} "
        "seconds={} shift={} companion={} kills={} ycsb={}",
        workload.thp, workload.fast, workload.slow, workload.ratio, workload.kernel, workload.size,
        workload.hot, workload.exponent, workload.keys_per_page, workload.reads, workload.consent,
        workload.threads, workload.seconds, workload.shift_every, workload.companion_ms, workload.kills,
        workload.ycsb);
}

Result<Figures> read_figures(const Workload& workload, std::string_view lines) {
    if (workload.bench == "tiering-several") return read_several(workload, lines);
    if (workload.bench == "tiering-kill") return read_kills(lines);
    const auto run = parse_load_run(lines);
    if (!run) return std::unexpected(run.error());
    return figures_for(workload.bench, run_figures(*run, workload.detect_seconds));
}

}  // namespace memtide::bench
