#include "tests/bench/tiering/distribution.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/bench/tiering/btree.h"

namespace memtide::bench {
namespace {

constexpr double kAll32Bits = 4294967296.0;

std::uint32_t share_of_32_bits(double share) {
    return static_cast<std::uint32_t>(std::clamp(share * kAll32Bits, 0.0, kAll32Bits - 1));
}

// Where the hot set is in a phase: the pieces of memory in shuffled order (Fisher and Yates).
PageSpan hot_set(const Shape& shape, unsigned phase) {
    std::vector<std::size_t> order(std::max<std::size_t>(1, shape.pages / shape.hot_pages));
    std::iota(order.begin(), order.end(), 0);
    Random random(7);
    for (std::size_t i = order.size() - 1; i > 0; --i)
        std::swap(order[i], order[Random::scale(static_cast<std::uint32_t>(random.next()), i + 1)]);
    return {order[phase % order.size()] * shape.hot_pages, shape.hot_pages};
}

// In each phase other pages, and as many of them.
std::vector<double> strewn(const Shape& shape, unsigned phase) {
    const auto hot = static_cast<double>(shape.hot_pages);
    const double rest = static_cast<double>(shape.pages) - hot;
    if (rest <= 0) return std::vector<double>(shape.pages, 1 / hot);
    std::vector<double> popularity(shape.pages, (1 - shape.hot_share) / rest);
    const std::size_t distance = shape.pages / shape.hot_pages;
    for (std::size_t i = 0; i < shape.hot_pages; ++i)
        popularity[i * distance + phase % distance] = shape.hot_share / hot;
    return popularity;
}

}  // namespace

Distribution::Distribution(const Shape& shape, unsigned phase) : shape_(shape) {
    if (shape.pattern == Pattern::kZipf) {
        popularity_ = scrambled_zipf(shape.pages * shape.keys_per_page, shape.pages, shape.exponent, phase);
        picks_ = AliasTable(popularity_);
    } else if (shape.pattern == Pattern::kStrewn) {
        popularity_ = strewn(shape, phase);
        picks_ = AliasTable(popularity_);
    } else if (shape.pattern != Pattern::kUniform) {
        hot_ = hot_set(shape, phase);
        hot_threshold_ = share_of_32_bits(hot_.count == shape.pages ? 1.0 : shape.hot_share);
        // With everything hot there is nowhere else to go.
        if (hot_.count == shape.pages)
            shape_.pattern = shape.pattern == Pattern::kScan ? shape.pattern : Pattern::kUniform;
    }
}

Distribution::Distribution(const Shape& shape, unsigned phase, const Btree& tree)
    : shape_(shape), popularity_(shape.pages) {
    const std::vector<double> shares = scrambled_zipf(tree.records(), tree.records(), shape.exponent, phase);
    picks_ = AliasTable(shares);
    for (std::size_t number = 0; number < shares.size(); ++number) {
        if (shares[number] == 0) continue;
        const Btree::Path path = tree.path(key_of(number));
        for (unsigned level = 0; level < path.levels; ++level)
            popularity_[path.pages[level]] += shares[number] / path.levels;
    }
}

double Distribution::probability(std::size_t page) const {
    const auto pages = static_cast<double>(shape_.pages);
    if (shape_.pattern == Pattern::kUniform) return 1 / pages;
    if (!popularity_.empty()) return popularity_[page];
    const auto hot = static_cast<double>(hot_.count);
    const bool is_hot = page >= hot_.first && page < hot_.first + hot_.count;
    if (shape_.pattern == Pattern::kScan) return is_hot ? 1 / hot : 0;
    return is_hot ? shape_.hot_share / hot : (1 - shape_.hot_share) / (pages - hot);
}

double Distribution::hit(const std::vector<int>& nodes, int node) const {
    if (!popularity_.empty()) {
        double sum = 0;
        for (std::size_t page = 0; page < nodes.size(); ++page)
            if (nodes[page] == node) sum += popularity_[page];
        return sum;
    }
    // Two kinds of pages at most: counting them costs less.
    const auto hot_begin = nodes.begin() + static_cast<std::ptrdiff_t>(hot_.first);
    const auto hot = std::count(hot_begin, hot_begin + static_cast<std::ptrdiff_t>(hot_.count), node);
    const auto cold = std::count(nodes.begin(), nodes.end(), node) - hot;
    const double of_hot = hot > 0 ? probability(hot_.first) : 0;
    const double of_cold = cold > 0 ? probability(hot_.first == 0 ? hot_.count : 0) : 0;
    return static_cast<double>(hot) * of_hot + static_cast<double>(cold) * of_cold;
}

double Distribution::best_hit(std::size_t fast_pages) const {
    std::vector<double> shares(shape_.pages);
    for (std::size_t page = 0; page < shares.size(); ++page) shares[page] = probability(page);
    return best_of(std::move(shares), fast_pages);
}

}  // namespace memtide::bench
