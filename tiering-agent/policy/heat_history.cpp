#include "tiering-agent/policy/heat_history.h"

#include <algorithm>
#include <utility>

namespace memtide::agent {
namespace {

using Cell = HeatHistory::Cell;

// Of two neighbours, in time or in address.
Cell mean_of(Cell a, Cell b) {
    if (a.is_absent()) return b;
    if (b.is_absent()) return a;
    const auto mean = [](unsigned one, unsigned other) {
        return static_cast<std::uint8_t>((one + other + 1) / 2);
    };
    return {mean(a.touched, b.touched), mean(a.slow, b.slow)};
}

}  // namespace

void HeatHistory::observe(std::uint64_t page, std::span<const PageSeen> seen) {
    while (!seen.empty()) {
        const std::uint64_t count =
            std::min<std::uint64_t>(seen.size(), kPagesPerHuge - page % kPagesPerHuge);
        std::uint64_t present = 0;
        std::uint64_t touched = 0;
        std::uint64_t slow = 0;
        for (const PageSeen& one : seen.first(count)) {
            if (one.tier == PageHeat::kNowhere) continue;
            ++present;
            touched += one.touched ? 1 : 0;
            slow += one.tier != 0 ? 1 : 0;
        }
        if (present > 0) {
            Part& part = parts_[page >> shift_];
            part.present += present;
            part.touched += touched;
            part.slow += slow;
            while (parts_.size() > kMostRows) double_rows();
        }
        page += count;
        seen = seen.subspan(count);
    }
}

void HeatHistory::end_look(Time now) {
    if (!std::exchange(has_begun_, true)) began_ = now;
    if (now < began_ + span_) return;
    end_column();
    began_ = now;
}

void HeatHistory::end_column() {
    if (columns_.size() == kMostColumns) {
        if (span_ < kLongestColumn)
            double_columns();
        else
            drop_oldest_column();
    }
    const std::size_t at = columns_.size();
    columns_.push_back(began_);
    for (auto& [number, part] : parts_) {
        const auto share = [&part = part](std::uint64_t of) {
            return static_cast<std::uint8_t>((of * Cell::kMost + part.present / 2) / part.present);
        };
        part.cells[at] = part.present == 0 ? Cell{} : Cell{share(part.touched), share(part.slow)};
        part.present = part.touched = part.slow = 0;
    }
    std::erase_if(parts_, [at](const auto& entry) {
        return std::all_of(entry.second.cells.begin(),
                           entry.second.cells.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                           [](const Cell& cell) { return cell.is_absent(); });
    });
}

void HeatHistory::double_rows() {
    ++shift_;
    std::map<std::uint64_t, Part> larger;
    for (const auto& [number, part] : parts_) {
        const auto [found, is_new] = larger.try_emplace(number >> 1, part);
        if (is_new) continue;
        Part& into = found->second;
        for (std::size_t i = 0; i < kMostColumns; ++i) into.cells[i] = mean_of(into.cells[i], part.cells[i]);
        into.present += part.present;
        into.touched += part.touched;
        into.slow += part.slow;
    }
    parts_ = std::move(larger);
}

void HeatHistory::double_columns() {
    span_ *= 2;
    for (auto& [number, part] : parts_) {
        for (std::size_t i = 0; i < kMostColumns / 2; ++i)
            part.cells[i] = mean_of(part.cells[2 * i], part.cells[2 * i + 1]);
        std::fill(part.cells.begin() + kMostColumns / 2, part.cells.end(), Cell{});
    }
    for (std::size_t i = 0; i < kMostColumns / 2; ++i) columns_[i] = columns_[2 * i];
    columns_.resize(kMostColumns / 2);
}

void HeatHistory::drop_oldest_column() {
    columns_.erase(columns_.begin());
    for (auto& [number, part] : parts_) {
        std::shift_left(part.cells.begin(), part.cells.end(), 1);
        part.cells.back() = Cell{};
    }
}

std::vector<HeatHistory::Row> HeatHistory::rows() const {
    std::vector<Row> rows;
    for (const auto& [number, part] : parts_) {
        Row row{.begin = number << shift_, .end = (number + 1) << shift_, .cells = {}};
        row.cells.assign(part.cells.begin(),
                         part.cells.begin() + static_cast<std::ptrdiff_t>(columns_.size()));
        rows.push_back(std::move(row));
    }
    return rows;
}

std::size_t HeatHistory::memory() const {
    constexpr std::size_t kNode = sizeof(std::pair<std::uint64_t, Part>) + 4 * sizeof(void*);  // of the tree
    return sizeof *this + parts_.size() * kNode + columns_.capacity() * sizeof(Time);
}

}  // namespace memtide::agent
