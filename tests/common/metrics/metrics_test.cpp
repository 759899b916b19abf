#include <gtest/gtest.h>

#include "common/metrics/process.h"
#include "common/metrics/registry.h"

namespace memtide::metrics {
namespace {

TEST(Registry, RendersPrometheusText) {
    Registry registry;
    registry.counter("memtide_requests_total", "Requests served.", {{"code", "200"}}).add(3);
    registry.gauge("memtide_free_bytes", "Free capacity.", {{"device", "a\"b\\c\nd"}}).set(1.5);
    auto& latency = registry.histogram("memtide_seconds", "Time taken.", {0.1, 1});
    latency.observe(0.1);
    latency.observe(0.5);
    latency.observe(7);
    EXPECT_EQ(registry.render(),
              "# HELP memtide_free_bytes Free capacity.\n# TYPE memtide_free_bytes gauge\n"
              "memtide_free_bytes{device=\"a\\\"b\\\\c\\nd\"} 1.5\n"
              "# HELP memtide_requests_total Requests served.\n# TYPE memtide_requests_total counter\n"
              "memtide_requests_total{code=\"200\"} 3\n"
              "# HELP memtide_seconds Time taken.\n# TYPE memtide_seconds histogram\n"
              "memtide_seconds_bucket{le=\"0.1\"} 1\nmemtide_seconds_bucket{le=\"1\"} 2\n"
              "memtide_seconds_bucket{le=\"+Inf\"} 3\nmemtide_seconds_sum 7.6\nmemtide_seconds_count 3\n");
}

TEST(Registry, TheSameNameAndLabelsGiveTheSameMetric) {
    Registry registry;
    EXPECT_EQ(&registry.counter("a", "", {{"x", "1"}}), &registry.counter("a", "", {{"x", "1"}}));
    EXPECT_NE(&registry.counter("a", "", {{"x", "1"}}), &registry.counter("a", "", {{"x", "2"}}));
}

TEST(Registry, ComputedGaugesAreRefreshedBeforeRendering) {
    Registry registry;
    registry.before_render([&] { registry.gauge("now", "").set(4); });
    EXPECT_NE(registry.render().find("now 4\n"), std::string::npos);
}

TEST(Registry, WhatOthersCountIsACounter) {
    Registry registry;
    registry.counted("cpu_seconds_total", "CPU time.").set(1.25);
    EXPECT_EQ(
        registry.render(),
        "# HELP cpu_seconds_total CPU time.\n# TYPE cpu_seconds_total counter\ncpu_seconds_total 1.25\n");
}

TEST(ProcessMetrics, TellOfThisProcess) {
    Registry registry;
    add_process_metrics(registry, "test", "1.2.3");
    const std::string text = registry.render();
    EXPECT_NE(text.find("memtide_build_info{program=\"test\",version=\"1.2.3\"} 1\n"), std::string::npos);
    const auto value = [&](const std::string& name) {
        const auto at = text.find("\n" + name + " ");
        return at == std::string::npos ? 0.0 : std::stod(text.substr(at + name.size() + 2));
    };
    EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
    EXPECT_GE(value("process_open_fds"), 3);
    EXPECT_GE(value("process_max_fds"), value("process_open_fds"));
    EXPECT_GE(value("process_threads"), 1);
    EXPECT_GT(value("process_start_time_seconds"), 1.6e9);
    EXPECT_EQ(resident_bytes(-1), 0);
}

}  // namespace
}  // namespace memtide::metrics
