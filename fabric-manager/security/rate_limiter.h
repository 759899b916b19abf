#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>

namespace memtide::fm {

struct Rate {
    double per_second = 0;  // 0: no limit
    double burst = 0;       // how many may come at once; at least 1
};

// Token buckets by key. Remembers a bounded number of keys: full buckets are forgotten, which changes nothing
// for whom they are. Not thread safe.
class RateLimiter {
  public:
    using Clock = std::chrono::steady_clock;

    explicit RateLimiter(Rate rate, std::size_t most_keys = 16'384) : rate_(rate), most_keys_(most_keys) {}

    // Takes one from the key's bucket; nothing when there was one, else how long until there will be one.
    std::optional<std::chrono::milliseconds> take(const std::string& key, Clock::time_point now);
    // Whether a take() would be let through, without taking.
    [[nodiscard]] std::optional<std::chrono::milliseconds> look(const std::string& key,
                                                                Clock::time_point now) const;
    [[nodiscard]] std::size_t key_count() const { return buckets_.size(); }

  private:
    struct Bucket {
        double filled = 0;
        Clock::time_point at;
    };
    [[nodiscard]] double filled(const Bucket& bucket, Clock::time_point now) const;
    [[nodiscard]] std::chrono::milliseconds until_one(double filled) const;
    void make_room(Clock::time_point now);

    Rate rate_;
    std::size_t most_keys_;
    std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace memtide::fm
