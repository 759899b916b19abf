#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace memtide::bench {

// Prints one figure as the JSON line that every benchmark prints: the median of the runs, with their range.
// `against` names what a ratio was measured against, in the same run.
inline void print_figure(const std::string& bench, const std::string& figure, const std::string& unit,
                         std::vector<double> runs, const std::string& against = {}) {
    std::ranges::sort(runs);
    const std::size_t half = runs.size() / 2;
    const double median = runs.size() % 2 == 1 ? runs[half] : (runs[half - 1] + runs[half]) / 2;
    std::printf(R"({"bench": "%s", "figure": "%s", "value": %.5f, "unit": "%s", "runs": %zu, "min": %.5f, )"
                R"("max": %.5f%s%s%s})"
                "\n",
                bench.c_str(), figure.c_str(), median, unit.c_str(), runs.size(), runs.front(), runs.back(),
                against.empty() ? "" : R"(, "against": ")", against.c_str(), against.empty() ? "" : "\"");
    std::fflush(stdout);
}

// The main() of a benchmark: what it throws ends it.
inline int run_bench(int (*measure)()) {
    try {
        return measure();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench: %s\n", error.what());
        return EXIT_FAILURE;
    }
}

}  // namespace memtide::bench
