#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace memtide::metrics {

using Labels = std::map<std::string, std::string>;

// Only goes up. Thread safe, as are the others.
class Counter {
  public:
    void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

class Gauge {
  public:
    void set(double v) { value_.store(v, std::memory_order_relaxed); }
    void add(double v) { value_.fetch_add(v, std::memory_order_relaxed); }
    [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<double> value_{0};
};

// Counts observations at or below each bound, as Prometheus histograms do.
class Histogram {
  public:
    explicit Histogram(std::vector<double> bounds);
    void observe(double v);

  private:
    friend class Registry;
    std::vector<double> bounds_;
    std::unique_ptr<std::atomic<std::uint64_t>[]> buckets_;  // one more than bounds_: +Inf
    std::atomic<double> sum_{0};
};

// Bounds for durations in seconds from 0.5 ms to 60 s.
std::vector<double> duration_bounds();

// Holds every metric of a process and writes them in Prometheus text format 0.0.4. References returned stay
// valid as long as the registry; asking again for the same name and labels gives the same object.
class Registry {
  public:
    Counter& counter(std::string name, std::string help, Labels labels = {});
    Gauge& gauge(std::string name, std::string help, Labels labels = {});
    // A counter that somebody else counts, such as the kernel; set before every render().
    Gauge& counted(std::string name, std::string help, Labels labels = {});
    Histogram& histogram(std::string name, std::string help, std::vector<double> bounds, Labels labels = {});
    // Runs before every render(), to set gauges that are computed.
    void before_render(std::function<void()> refresh);
    [[nodiscard]] std::string render();

  private:
    struct Family;
    Family& family(std::string name, std::string help, std::string_view type);
    static void render_histogram(std::string& text, const std::string& name, const Labels& labels,
                                 const Histogram& histogram);

    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Family>> families_;
    std::vector<std::function<void()>> refreshers_;
};

}  // namespace memtide::metrics
