#include "tests/bench/tiering/runs.h"

#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace memtide::bench {
namespace json = boost::json;

namespace {

SavedRun read_run(std::string_view line) {
    const json::value value = json::parse(line);
    const json::object& object = value.as_object();
    SavedRun run;
    run.bench = object.at("bench").as_string();
    run.system = object.at("system").as_string();
    run.settings = object.at("settings").as_string();
    run.number = object.at("run").to_number<unsigned>();
    for (const auto& [name, figure] : object.at("figures").as_object())
        run.figures[name] = figure.to_number<double>();
    return run;
}

std::string line_of(const SavedRun& run) {
    json::object figures;
    for (const auto& [name, value] : run.figures) figures[name] = value;
    return json::serialize(json::object{{"bench", run.bench},
                                        {"system", run.system},
                                        {"settings", run.settings},
                                        {"run", run.number},
                                        {"figures", std::move(figures)}}) +
           "\n";
}

void add(Figures& figures, const char* name, std::optional<double> value) {
    if (value) figures[name] = *value;
}

}  // namespace

const std::vector<FigureRow>& figure_rows() {
    static const std::vector<FigureRow> kRows{
        {"hit_over_oracle", "ratio"},
        {"hit", "ratio"},
        {"oracle", "ratio"},
        {"convergence_seconds", "s"},
        {"recovery_seconds", "s"},
        {"hit_after_shift", "ratio"},
        {"regret_seconds", "s"},
        {"regret_over_unavoidable", "ratio"},
        {"bytes_moved_after_30s", "bytes a minute"},
        {"bytes_moved", "bytes"},
        {"failed_moves", "share"},
        {"wasted_moves", "share"},
        {"fast_share", "share"},
        {"stall_p999_ms", "ms"},
        {"ops_per_second", "1/s"},
        {"agent_cpu_percent", "% of a core"},
        {"agent_cpu_seconds", "s"},
        {"agent_resident_mb", "MiB"},
        {"kills", "kills"},
        {"lost", "loads that lost data"},
        {"hung", "agents that hung"},
        {"resume_seconds", "s"},
        {"first_window_seconds", "s"},
    };
    return kRows;
}

const FigureRow* row_of(std::string_view figure) {
    const FigureRow* best = nullptr;
    for (const FigureRow& row : figure_rows()) {
        const bool is_it =
            figure == row.name || (figure.starts_with(row.name) && figure[row.name.size()] == '_');
        if (is_it && (best == nullptr || row.name.size() > best->name.size())) best = &row;
    }
    return best;
}

Figures figures_for(const std::string& bench, const RunFigures& run) {
    Figures figures;
    if (bench == "tiering-uniform") {
        figures["bytes_moved_after_30s"] = run.bytes_moved_after_30s;
    } else {
        figures["hit_over_oracle"] = run.hit_over_oracle;
        figures["hit"] = run.hit;
        figures["oracle"] = run.oracle;
        figures["regret_seconds"] = run.regret_seconds;
        add(figures, "convergence_seconds", run.convergence_seconds);
        add(figures, "recovery_seconds", run.recovery_seconds);
        add(figures, "hit_after_shift", run.hit_after_shift);
    }
    // What has to be copied is known for a hot set only.
    if (bench == "tiering-gups" || bench == "tiering-scan")
        add(figures, "regret_over_unavoidable", run.regret_over_unavoidable);
    figures["bytes_moved"] = run.bytes_moved;
    figures["failed_moves"] = run.failed_moves;
    figures["wasted_moves"] = run.wasted_moves;
    figures["stall_p999_ms"] = run.stall_p999_ms;
    figures["ops_per_second"] = run.ops_per_second;
    add(figures, "agent_cpu_percent", run.agent_cpu_percent);
    add(figures, "agent_cpu_seconds", run.agent_cpu_seconds);
    add(figures, "agent_resident_mb", run.agent_resident_mb);
    return figures;
}

Result<SavedRuns> SavedRuns::open(const std::string& path) {
    SavedRuns saved;
    saved.path_ = path;
    std::string text;
    if (std::ifstream file(path); file) text.assign(std::istreambuf_iterator<char>(file), {});
    const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    if (whole < text.size()) {
        std::error_code error;
        std::filesystem::resize_file(path, whole, error);
        if (error) return fail_errno("cut off the last line of", path, error.value());
    }
    std::string_view rest(text.data(), whole);
    for (std::size_t number = 1; !rest.empty(); ++number) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        try {
            saved.runs_.push_back(read_run(line));
        } catch (const std::exception& error) {
            return fail(ErrorCode::kProtocol,
                        fmt::format("line {} of {} is no run ({})", number, path, error.what()));
        }
    }
    saved.file_.reset(std::fopen(path.c_str(), "a"));
    if (!saved.file_) return fail_errno("open", path, errno);
    return saved;
}

const Figures* SavedRuns::find(std::string_view bench, std::string_view system, std::string_view settings,
                               unsigned number) const {
    for (const SavedRun& run : runs_)
        if (run.bench == bench && run.system == system && run.settings == settings && run.number == number)
            return &run.figures;
    return nullptr;
}

Result<> SavedRuns::add(SavedRun run) {
    if (file_) {
        const std::string line = line_of(run);
        if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
            std::fflush(file_.get()) != 0 || fdatasync(fileno(file_.get())) != 0)
            return fail_errno("write", path_, errno);
    }
    runs_.push_back(std::move(run));
    return {};
}

}  // namespace memtide::bench
