#include "tiering-agent/policy/thread_choice.h"

#include <algorithm>

namespace memtide::agent {
namespace {

constexpr double kWorthIt = 1.2;  // times as fast, for twice the threads
constexpr unsigned kFirstBatches = 4;
constexpr std::uint64_t kTrialEvery = 32;  // batches
constexpr double kNew = 0.25;              // weight of the last batch

}  // namespace

ThreadChoice::ThreadChoice(unsigned most) {
    ways_.push_back({.threads = 1});
    for (unsigned threads = 2; threads <= most; threads *= 2) ways_.push_back({.threads = threads});
}

const ThreadChoice::Way& ThreadChoice::best() const {
    const Way* best = &ways_.front();
    for (const Way& way : ways_)
        if (way.batches > 0 && way.rate > kWorthIt * best->rate) best = &way;
    return *best;
}

// Each way in turn at first, and then one in a while.
const ThreadChoice::Way* ThreadChoice::on_trial() const {
    for (const Way& way : ways_)
        if (way.batches < kFirstBatches) return &way;
    if (batches_ % kTrialEvery != 0) return nullptr;
    return &ways_[batches_ / kTrialEvery % ways_.size()];
}

unsigned ThreadChoice::chosen() const { return best().threads; }

unsigned ThreadChoice::threads(std::uint64_t pages) const {
    if (pages < kLeastPages) return 1;
    const Way* const trial = on_trial();
    return trial != nullptr ? trial->threads : chosen();
}

void ThreadChoice::note(unsigned threads, std::uint64_t pages, std::chrono::nanoseconds time) {
    if (pages < kLeastPages || time.count() <= 0) return;
    const auto way = std::ranges::find(ways_, threads, &Way::threads);
    if (way == ways_.end()) return;
    ++batches_;
    const double rate = double(pages) / double(time.count());
    way->rate = way->batches++ == 0 ? rate : way->rate + kNew * (rate - way->rate);
}

}  // namespace memtide::agent
