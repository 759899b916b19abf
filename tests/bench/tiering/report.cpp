#include "tests/bench/tiering/report.h"

#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/bench/tiering/placement.h"
#include "tests/bench/tiering/proc.h"

namespace memtide::bench {
namespace {

std::string counters_text() {
    std::vector<std::string> members;
    for (const auto& [name, value] : read_migration_counters())
        members.push_back(fmt::format(R"("{}":{})", name, value));
    return fmt::format("{}", fmt::join(members, ","));
}

std::string watched_text(pid_t watched) {
    const auto cost = watched > 0 ? read_process_cost(watched) : std::nullopt;
    if (!cost) return {};
    return fmt::format(R"(,"watched":{{"cpu_seconds":{:.2f},"resident_bytes":{}}})", cost->cpu_seconds,
                       cost->resident_bytes);
}

}  // namespace

void print_start(const StartLine& line) {
    fmt::print(R"({{"start":{{"pid":{},"pages":{},"hot_bytes":{},"fast_capacity_bytes":{},"phases":{},)"
               R"("copy_bytes_per_second":{:.0f},"fast_bytes":{},"slow_bytes":{},"look":"{}"}}}})"
               "\n",
               line.pid, line.pages, line.hot_pages * kPageBytes, line.fast_capacity_pages * kPageBytes,
               line.phases, line.copy_bytes_per_second, line.fast_pages * kPageBytes,
               line.slow_pages * kPageBytes, line.look);
    std::fflush(stdout);
}

void Reporter::print(const SampleLine& line, std::uint64_t accesses, const StallCounts& stalls,
                     std::uint64_t longest_ns) {
    StallCounts recent = stalls;
    for (std::size_t i = 0; i < recent.counts.size(); ++i) recent.counts[i] -= stalls_before_.counts[i];
    stalls_before_ = stalls;
    const double rate = line.seconds > seconds_before_ ? static_cast<double>(accesses - accesses_before_) /
                                                             (line.seconds - seconds_before_)
                                                       : 0;
    accesses_before_ = accesses;
    seconds_before_ = line.seconds;
    fmt::print(R"({{"t":{:.3f},"phase":{},"hit":{:.5f},"oracle":{:.5f},"ops_per_second":{:.0f},)"
               R"("stall_max_us":{:.1f},"stall_p999_us":{:.1f},"fast_bytes":{},"slow_bytes":{},)"
               R"("moved_pages":{},"undone_pages":{},"look_ms":{:.1f},"vmstat":{{{}}}{}}})"
               "\n",
               line.seconds, line.phase, line.hit, line.oracle, rate, static_cast<double>(longest_ns) / 1e3,
               static_cast<double>(recent.percentile(0.999)) / 1e3, line.fast_pages * kPageBytes,
               line.slow_pages * kPageBytes, line.moved_pages, line.undone_pages, line.look_seconds * 1e3,
               counters_text(), watched_text(watched_));
    std::fflush(stdout);
}

void Reporter::print(const SummaryLine& line, std::uint64_t accesses, const StallCounts& stalls) {
    fmt::print(R"({{"summary":{{"seconds":{:.3f},"accesses":{},"stall_p999_us":{:.1f},"moved_pages":{},)"
               R"("undone_pages":{},"look_cpu_share":{:.4f},"data":"{}"}}}})"
               "\n",
               line.seconds, accesses, static_cast<double>(stalls.percentile(0.999)) / 1e3, line.moved_pages,
               line.undone_pages, line.look_cpu_share, line.wrong.empty() ? "intact" : line.wrong);
    std::fflush(stdout);
}

}  // namespace memtide::bench
