#include "tests/bench/tiering/figures.h"

#include <algorithm>
#include <exception>
#include <numeric>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace memtide::bench {
namespace json = boost::json;

namespace {

constexpr double kRecovered = 0.95;
constexpr double kPage = 4096;

Sample read_sample(const json::object& line) {
    Sample sample;
    sample.seconds = line.at("t").to_number<double>();
    sample.phase = line.at("phase").to_number<unsigned>();
    sample.hit = line.at("hit").to_number<double>();
    sample.oracle = line.at("oracle").to_number<double>();
    sample.ops_per_second = line.at("ops_per_second").to_number<double>();
    sample.moved_pages = line.at("moved_pages").to_number<std::uint64_t>();
    sample.undone_pages = line.at("undone_pages").to_number<std::uint64_t>();
    if (const auto* const fast = line.if_contains("fast_bytes"))
        sample.fast_bytes = fast->to_number<std::uint64_t>();
    for (const auto& [name, value] : line.at("vmstat").as_object())
        sample.counters[name] = value.to_number<std::uint64_t>();
    if (const auto* const watched = line.if_contains("watched")) {
        sample.watched_cpu_seconds = watched->at("cpu_seconds").to_number<double>();
        sample.watched_resident_bytes = watched->at("resident_bytes").to_number<std::uint64_t>();
    }
    return sample;
}

std::string read_line(const json::object& line, LoadRun& run) {
    if (const auto* const start = line.if_contains("start")) {
        run.hot_bytes = start->at("hot_bytes").to_number<std::uint64_t>();
        run.fast_capacity_bytes = start->at("fast_capacity_bytes").to_number<std::uint64_t>();
        run.copy_bytes_per_second = start->at("copy_bytes_per_second").to_number<double>();
        return {};
    }
    if (const auto* const summary = line.if_contains("summary")) {
        run.stall_p999_us = summary->at("stall_p999_us").to_number<double>();
        return std::string(summary->at("data").as_string());
    }
    run.samples.push_back(read_sample(line));
    return {};
}

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// `samples` are those of one phase; the next one begins, or the run ends, at `end`.
PhaseFigures figures_of(const std::vector<Sample>& samples, double end) {
    PhaseFigures phase;
    const double begin = samples.front().seconds;
    phase.seconds = end - begin;
    phase.first_hit = samples.front().hit;
    phase.oracle = samples.front().oracle;
    std::vector<double> late;
    for (const Sample& sample : samples)
        if (sample.seconds >= begin + phase.seconds * 2 / 3) late.push_back(sample.hit);
    phase.steady_hit = late.empty() ? samples.back().hit : median(late);
    const double recovered = kRecovered * phase.steady_hit;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (phase.first_hit < recovered && !phase.recovery_seconds && samples[i].hit >= recovered)
            phase.recovery_seconds = samples[i].seconds - begin;
        const double next = i + 1 < samples.size() ? samples[i + 1].seconds : end;
        const double later_hit = i + 1 < samples.size() ? samples[i + 1].hit : samples[i].hit;
        phase.lost_seconds += (phase.oracle - (samples[i].hit + later_hit) / 2) * (next - samples[i].seconds);
    }
    return phase;
}

double counter_at(const Sample& sample, const std::string& counter) {
    const auto found = sample.counters.find(counter);
    return found == sample.counters.end() ? 0 : static_cast<double>(found->second);
}

void add_agent_figures(const LoadRun& run, RunFigures& figures) {
    const Sample* first = nullptr;
    const Sample* last = nullptr;
    std::uint64_t most = 0;
    for (const Sample& sample : run.samples) {
        if (!sample.watched_cpu_seconds) continue;
        if (first == nullptr) first = &sample;
        last = &sample;
        most = std::max(most, sample.watched_resident_bytes);
    }
    if (first == last) return;
    const double used = *last->watched_cpu_seconds - *first->watched_cpu_seconds;
    figures.agent_cpu_seconds = used;
    figures.agent_cpu_percent = 100 * used / (last->seconds - first->seconds);
    figures.agent_resident_mb = static_cast<double>(most) / (1 << 20);
}

void add_phase_figures(const LoadRun& run, double detect_seconds, RunFigures& figures) {
    std::vector<double> ratios;
    std::vector<double> recoveries;
    double unavoidable = 0;
    double hit_seconds = 0;
    double shifted_seconds = 0;
    const std::vector<PhaseFigures> phases = phase_figures(run);
    for (std::size_t i = 0; i < phases.size(); ++i) {
        const PhaseFigures& phase = phases[i];
        ratios.push_back(phase.steady_hit / phase.oracle);
        figures.hit += phase.steady_hit / static_cast<double>(phases.size());
        figures.oracle += phase.oracle / static_cast<double>(phases.size());
        figures.regret_seconds += phase.lost_seconds;
        unavoidable += unavoidable_seconds(run, phase, detect_seconds);
        if (i == 0) {
            figures.convergence_seconds = phase.recovery_seconds;
            continue;
        }
        if (phase.recovery_seconds) recoveries.push_back(*phase.recovery_seconds);
        hit_seconds += phase.oracle * phase.seconds - phase.lost_seconds;
        shifted_seconds += phase.seconds;
    }
    figures.hit_over_oracle = mean(ratios);
    if (!recoveries.empty()) figures.recovery_seconds = mean(recoveries);
    if (shifted_seconds > 0) figures.hit_after_shift = hit_seconds / shifted_seconds;
    if (unavoidable > 0) figures.regret_over_unavoidable = figures.regret_seconds / unavoidable;
}

}  // namespace

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Result<LoadRun> parse_load_run(std::string_view lines) {
    LoadRun run;
    bool ended = false;
    for (std::size_t number = 1; !lines.empty(); ++number) {
        const std::string_view text = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(lines.size(), text.size() + 1));
        if (text.empty()) continue;
        try {
            const json::value value = json::parse(text);
            const std::string data = read_line(value.as_object(), run);
            if (data.empty()) continue;
            ended = true;
            if (data != "intact") return fail(ErrorCode::kProtocol, "the load lost data: " + data);
        } catch (const std::exception& error) {
            return fail(ErrorCode::kProtocol,
                        fmt::format("line {} of the load is none ({}): {}", number, error.what(), text));
        }
    }
    if (!ended) return fail(ErrorCode::kProtocol, "the load did not come to its end");
    if (run.samples.size() < 2) return fail(ErrorCode::kProtocol, "the load said too little");
    return run;
}

std::vector<PhaseFigures> phase_figures(const LoadRun& run) {
    std::vector<PhaseFigures> phases;
    for (auto begin = run.samples.begin(); begin != run.samples.end();) {
        const auto next = std::find_if(
            begin, run.samples.end(), [begin](const Sample& sample) { return sample.phase != begin->phase; });
        const double end = next == run.samples.end() ? run.samples.back().seconds : next->seconds;
        phases.push_back(figures_of({begin, next}, end));
        begin = next;
    }
    return phases;
}

double unavoidable_seconds(const LoadRun& run, const PhaseFigures& phase, double detect_seconds) {
    const double copy =
        run.copy_bytes_per_second > 0 ? static_cast<double>(run.hot_bytes) / run.copy_bytes_per_second : 0;
    return std::max(0.0, phase.oracle - phase.first_hit) * (detect_seconds + copy / 2);
}

std::uint64_t counted(const LoadRun& run, const std::string& counter, double from_seconds) {
    const auto first = std::ranges::find_if(
        run.samples, [from_seconds](const Sample& sample) { return sample.seconds >= from_seconds; });
    if (first == run.samples.end()) return 0;
    return static_cast<std::uint64_t>(
        std::max(0.0, counter_at(run.samples.back(), counter) - counter_at(*first, counter)));
}

RunFigures run_figures(const LoadRun& run, double detect_seconds) {
    RunFigures figures;
    add_phase_figures(run, detect_seconds, figures);
    add_agent_figures(run, figures);
    const auto succeeded = static_cast<double>(counted(run, "pgmigrate_success"));
    const auto failed = static_cast<double>(counted(run, "pgmigrate_fail"));
    figures.bytes_moved = succeeded * kPage;
    if (succeeded + failed > 0) figures.failed_moves = failed / (succeeded + failed);
    if (const double watched = run.samples.back().seconds - 30; watched > 0)
        figures.bytes_moved_after_30s =
            static_cast<double>(counted(run, "pgmigrate_success", 30)) * kPage * 60 / watched;
    const Sample& last = run.samples.back();
    if (last.moved_pages > 0)
        figures.wasted_moves = static_cast<double>(last.undone_pages) / static_cast<double>(last.moved_pages);
    figures.stall_p999_ms = run.stall_p999_us / 1e3;
    std::vector<double> speeds;
    for (std::size_t i = 1; i < run.samples.size(); ++i) speeds.push_back(run.samples[i].ops_per_second);
    figures.ops_per_second = median(speeds);
    return figures;
}

}  // namespace memtide::bench
