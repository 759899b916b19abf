#include "common/metrics/registry.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace memtide::metrics {

struct Registry::Family {
    std::string help;
    std::string type;
    std::map<Labels, std::unique_ptr<Counter>> counters;
    std::map<Labels, std::unique_ptr<Gauge>> gauges;
    std::map<Labels, std::unique_ptr<Histogram>> histograms;
};

namespace {

std::string escaped(std::string_view text, bool quotes) {
    std::string result;
    for (const char c : text) {
        if (c == '\\' || (quotes && c == '"')) result += '\\';
        if (c == '\n')
            result += "\\n";
        else
            result += c;
    }
    return result;
}

// {a="1",b="2"}, with `extra` ('le="0.5"') behind; nothing when there are none.
std::string label_text(const Labels& labels, const std::string& extra = {}) {
    std::string text;
    for (const auto& [key, value] : labels) {
        if (!text.empty()) text += ',';
        text += fmt::format("{}=\"{}\"", key, escaped(value, true));
    }
    if (!extra.empty()) text += (text.empty() ? "" : ",") + extra;
    return text.empty() ? text : "{" + text + "}";
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), buckets_(new std::atomic<std::uint64_t>[bounds_.size() + 1] {}) {}

void Histogram::observe(double v) {
    const auto bucket = std::ranges::lower_bound(bounds_, v) - bounds_.begin();
    buckets_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(v, std::memory_order_relaxed);
}

std::vector<double> duration_bounds() {
    return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
}

Registry::Family& Registry::family(std::string name, std::string help, std::string_view type) {
    auto& slot = families_[std::move(name)];
    if (!slot) slot = std::make_shared<Family>(Family{std::move(help), std::string(type), {}, {}, {}});
    return *slot;
}

Counter& Registry::counter(std::string name, std::string help, Labels labels) {
    const std::lock_guard lock(mutex_);
    auto& slot = family(std::move(name), std::move(help), "counter").counters[std::move(labels)];
    if (!slot) slot = std::make_unique<Counter>();
    return *slot;
}

Gauge& Registry::gauge(std::string name, std::string help, Labels labels) {
    const std::lock_guard lock(mutex_);
    auto& slot = family(std::move(name), std::move(help), "gauge").gauges[std::move(labels)];
    if (!slot) slot = std::make_unique<Gauge>();
    return *slot;
}

Gauge& Registry::counted(std::string name, std::string help, Labels labels) {
    const std::lock_guard lock(mutex_);
    auto& slot = family(std::move(name), std::move(help), "counter").gauges[std::move(labels)];
    if (!slot) slot = std::make_unique<Gauge>();
    return *slot;
}

Histogram& Registry::histogram(std::string name, std::string help, std::vector<double> bounds,
                               Labels labels) {
    const std::lock_guard lock(mutex_);
    auto& slot = family(std::move(name), std::move(help), "histogram").histograms[std::move(labels)];
    if (!slot) slot = std::make_unique<Histogram>(std::move(bounds));
    return *slot;
}

void Registry::before_render(std::function<void()> refresh) {
    const std::lock_guard lock(mutex_);
    refreshers_.push_back(std::move(refresh));
}

void Registry::render_histogram(std::string& text, const std::string& name, const Labels& labels,
                                const Histogram& histogram) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i <= histogram.bounds_.size(); ++i) {
        count += histogram.buckets_[i].load(std::memory_order_relaxed);
        const std::string bound =
            i < histogram.bounds_.size() ? fmt::format("{}", histogram.bounds_[i]) : "+Inf";
        text +=
            fmt::format("{}_bucket{} {}\n", name, label_text(labels, fmt::format("le=\"{}\"", bound)), count);
    }
    text += fmt::format("{}_sum{} {}\n", name, label_text(labels), histogram.sum_.load());
    text += fmt::format("{}_count{} {}\n", name, label_text(labels), count);
}

std::string Registry::render() {
    std::vector<std::function<void()>> refreshers;
    {
        const std::lock_guard lock(mutex_);
        refreshers = refreshers_;
    }
    for (const auto& refresh : refreshers) refresh();  // without the lock: they set gauges of this registry

    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [name, family] : families_) {
        text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(family->help, false), name,
                            family->type);
        for (const auto& [labels, metric] : family->counters)
            text += fmt::format("{}{} {}\n", name, label_text(labels), metric->value());
        for (const auto& [labels, metric] : family->gauges)
            text += fmt::format("{}{} {}\n", name, label_text(labels), metric->value());
        for (const auto& [labels, metric] : family->histograms) render_histogram(text, name, labels, *metric);
    }
    return text;
}

}  // namespace memtide::metrics
