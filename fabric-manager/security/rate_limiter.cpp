#include "fabric-manager/security/rate_limiter.h"

#include <algorithm>
#include <cmath>

namespace memtide::fm {

double RateLimiter::filled(const Bucket& bucket, Clock::time_point now) const {
    const double seconds = std::max(0.0, std::chrono::duration<double>(now - bucket.at).count());
    return std::min(std::max(1.0, rate_.burst), bucket.filled + seconds * rate_.per_second);
}

std::chrono::milliseconds RateLimiter::until_one(double filled) const {
    return std::chrono::milliseconds(
        static_cast<std::int64_t>(std::ceil((1 - filled) / rate_.per_second * 1000)));
}

std::optional<std::chrono::milliseconds> RateLimiter::take(const std::string& key, Clock::time_point now) {
    if (rate_.per_second <= 0) return std::nullopt;
    auto found = buckets_.find(key);
    if (found == buckets_.end()) {
        if (buckets_.size() >= most_keys_) make_room(now);
        found = buckets_.emplace(key, Bucket{std::max(1.0, rate_.burst), now}).first;
    }
    Bucket& bucket = found->second;
    bucket.filled = filled(bucket, now);
    bucket.at = std::max(bucket.at, now);
    if (bucket.filled < 1) return until_one(bucket.filled);
    bucket.filled -= 1;
    return std::nullopt;
}

std::optional<std::chrono::milliseconds> RateLimiter::look(const std::string& key,
                                                           Clock::time_point now) const {
    if (rate_.per_second <= 0) return std::nullopt;
    const auto found = buckets_.find(key);
    if (found == buckets_.end()) return std::nullopt;
    const double level = filled(found->second, now);
    if (level >= 1) return std::nullopt;
    return until_one(level);
}

// Someone who comes with ever new keys must neither grow the table nor free others of their limits at once.
void RateLimiter::make_room(Clock::time_point now) {
    const double full = std::max(1.0, rate_.burst);
    std::erase_if(buckets_, [&](const auto& one) { return filled(one.second, now) >= full; });
    for (auto it = buckets_.begin(); it != buckets_.end() && buckets_.size() >= most_keys_;)
        it = buckets_.erase(it);
}

}  // namespace memtide::fm
