#include "tests/bench/tiering/workers.h"

#include <chrono>

#include <fmt/format.h>

namespace memtide::bench {
namespace {

std::uint64_t name_of(std::size_t page) {
    return 0x6d656d7469646500 ^ (std::uint64_t{page} * 0x9e3779b97f4a7c15);
}
// In words: each thread's counter has a cache line, after that of the name.
std::size_t counter_of(unsigned thread) { return 8 * (std::size_t{thread} + 1); }

}  // namespace

void Workers::name_pages(const Mapping& mapping, PageSpan span) {
    for (std::size_t page = span.first; page < span.first + span.count; ++page)
        mapping.page(page)[0] = name_of(page);
}

Workers::Workers(const Mapping& mapping, unsigned threads, bool reads) : mapping_(mapping), reads_(reads) {
    for (unsigned i = 0; i < threads; ++i) all_.push_back(std::make_unique<One>());
}

Workers::~Workers() { stop(); }

void Workers::start(const Distribution& first) {
    use(first);
    for (unsigned i = 0; i < all_.size(); ++i) all_[i]->thread = std::thread([this, i] { run(*all_[i], i); });
}

void Workers::stop() {
    stopping_.store(true);
    for (const auto& one : all_)
        if (one->thread.joinable()) one->thread.join();
}

void Workers::run(One& one, unsigned number) {
    using Clock = std::chrono::steady_clock;
    Random random(number + 1);
    std::size_t position = 0;
    auto before = Clock::now();
    while (!stopping_.load(std::memory_order_relaxed)) {
        const Distribution& distribution = *current_.load(std::memory_order_acquire);
        const bool right = tree_ != nullptr ? look_up(distribution, random, position, number)
                                            : access_pages(distribution, random, position, number);
        const auto now = Clock::now();
        one.stalls.add(static_cast<std::uint64_t>(std::chrono::nanoseconds(now - before).count()));
        before = now;
        one.accesses.store(one.accesses.load(std::memory_order_relaxed) + kAccessesPerBatch,
                           std::memory_order_relaxed);
        if (!right) wrong_.store(true, std::memory_order_relaxed);
    }
}

bool Workers::access_pages(const Distribution& distribution, Random& random, std::size_t& position,
                           unsigned number) const {
    const std::size_t counter = counter_of(number);
    bool right = true;
    for (unsigned i = 0; i < kAccessesPerBatch; ++i) {
        const std::size_t page = distribution.pick(random, position);
        volatile std::uint64_t* const words = mapping_.page(page);
        if (words[0] != name_of(page)) right = false;
        const std::uint64_t count = words[counter];
        if (!reads_) words[counter] = count + 1;
    }
    return right;
}

bool Workers::look_up(const Distribution& distribution, Random& random, std::size_t& position,
                      unsigned number) const {
    bool right = true;
    for (unsigned i = 0; i < kAccessesPerBatch; ++i)
        if (!tree_->access(key_of(distribution.pick(random, position)), number, !reads_)) right = false;
    return right;
}

std::uint64_t Workers::accesses() const {
    std::uint64_t sum = 0;
    for (const auto& one : all_) sum += one->accesses.load(std::memory_order_relaxed);
    return sum;
}

StallCounts Workers::stalls() const {
    StallCounts sum;
    for (const auto& one : all_) one->stalls.add_to(sum);
    return sum;
}

std::uint64_t Workers::take_longest_stall() {
    std::uint64_t longest = 0;
    for (const auto& one : all_) longest = std::max(longest, one->stalls.take_longest());
    return longest;
}

std::string Workers::check() const {
    if (tree_ != nullptr) {
        if (found_wrong_page()) return "a record had another one's data, or was not found, for a while";
        std::vector<std::uint64_t> updates;
        for (const auto& one : all_) updates.push_back(reads_ ? 0 : one->accesses.load());
        return tree_->check(updates);
    }
    for (std::size_t page = 0; page < mapping_.pages(); ++page)
        if (mapping_.page(page)[0] != name_of(page))
            return fmt::format("page {} has another one's data", page);
    if (found_wrong_page()) return "a page had another one's data for a while";
    for (unsigned thread = 0; thread < all_.size(); ++thread) {
        std::uint64_t sum = 0;
        for (std::size_t page = 0; page < mapping_.pages(); ++page)
            sum += mapping_.page(page)[counter_of(thread)];
        const std::uint64_t done = reads_ ? 0 : all_[thread]->accesses.load();
        if (sum != done)
            return fmt::format("thread {} made {} updates, and its pages have {} of them", thread, done, sum);
    }
    return {};
}

}  // namespace memtide::bench
