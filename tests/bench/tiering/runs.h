#pragma once

#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "tests/bench/tiering/figures.h"

namespace memtide::bench {

// What one run measured, by the names of figures; what there is no value for is left out.
using Figures = std::map<std::string, double>;

// Of a run with one load of benchmark `bench`: those figures that mean something for its pattern.
Figures figures_for(const std::string& bench, const RunFigures& run);

struct FigureRow {
    std::string_view name;
    std::string_view unit;
};
// All figures, in the order in which they are printed. A figure may have a name behind this one's
// ("hit_over_oracle_heavy") where there are several of a kind.
const std::vector<FigureRow>& figure_rows();
// The row of a figure; nothing when there is none.
const FigureRow* row_of(std::string_view figure);

struct SavedRun {
    std::string bench;
    std::string system;
    std::string settings;  // everything else that makes runs comparable
    unsigned number = 0;
    Figures figures;
};

// Runs that are done, one JSON line each in a file: a campaign that was ended goes on where it was. Not
// thread safe; one process at a time.
class SavedRuns {
  public:
    SavedRuns() = default;  // keeps nothing
    // Reads what is there. A last line without an end, of a process that was killed, is cut off. kProtocol
    // names a line that is none.
    static Result<SavedRuns> open(const std::string& path);

    // Until the next add().
    [[nodiscard]] const Figures* find(std::string_view bench, std::string_view system,
                                      std::string_view settings, unsigned number) const;
    // On disk when it returns.
    Result<> add(SavedRun run);

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;
    std::deque<SavedRun> runs_;
};

}  // namespace memtide::bench
