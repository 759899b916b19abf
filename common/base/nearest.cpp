#include "common/base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace memtide {
namespace {

constexpr std::size_t kMostEdits = 2;
constexpr std::size_t kLongestName = 64;  // a peer may send more; the time grows with the square

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view mistyped, const std::set<std::string, std::less<>>& known) {
    std::string_view best;
    std::size_t fewest = kMostEdits + 1;
    if (mistyped.size() > kLongestName) return best;
    for (const std::string& candidate : known) {
        const std::size_t edits = edit_distance(mistyped, candidate);
        if (edits < fewest && edits < candidate.size()) {
            fewest = edits;
            best = candidate;
        }
    }
    return best;
}

}  // namespace memtide
