#include "tiering-agent/policy/usual.h"

#include <algorithm>
#include <cmath>

namespace memtide::agent {

bool Usual::is_surprising(double now, double least) {
    constexpr unsigned kLeastTimes = 3;
    constexpr double kWeight = 0.25;
    constexpr double kDeviations = 5;
    constexpr double kLeastShare = 0.25;  // of the mean
    const double difference = now - mean_;
    const bool is_known = times_ >= kLeastTimes;
    const bool surprises =
        is_known && difference > std::max({least, kDeviations * deviation_, kLeastShare * mean_});
    const double weight = std::max(kWeight, 1.0 / (times_ + 1));
    if (times_ > 0) deviation_ += weight * (std::abs(difference) - deviation_);
    mean_ += weight * difference;
    ++times_;
    return surprises;
}

}  // namespace memtide::agent
