#include <gtest/gtest.h>

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

}  // namespace
}  // namespace memtide::metrics
