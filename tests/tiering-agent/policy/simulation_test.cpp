// What the policy comes to on loads of which the best placement is known.
#include <gtest/gtest.h>

#include "tests/tiering-agent/policy/simulator.h"

namespace memtide::agent {
namespace {

constexpr std::size_t kUnits = 80'000;  // 4 KiB each
constexpr double kTouches = 2e6;        // a second
const Simulator::Machine kMachine{.fast_pages = kUnits / 3};

void show(const char* name, const Simulator::Score& s) {
    std::printf("%s: hit %.4f oracle %.4f ratio %.4f regret %.2f recovered %.2f moved %lu wasted %lu cpu %.4f\n", name,
                s.hit, s.oracle, s.hit_over_oracle(), s.regret, s.recovered, s.moved_pages, s.wasted_pages,
                s.processor_share);
}

TEST(Simulation, GupsHotSet) {
    Simulator simulator(kMachine, kUnits, 1);
    const std::size_t hot = kUnits / 20;
    for (int phase = 0; phase < 5; ++phase) {
        simulator.set_rates(hot_set(kUnits, kUnits - hot * (1 + 2 * phase), hot, 0.9, kTouches));
        show("gups", simulator.run(120));
    }
}

TEST(Simulation, Zipf) {
    for (const double exponent : {0.7, 0.99, 1.2}) {
        Simulator simulator(kMachine, kUnits, 1);
        simulator.set_rates(zipf(kUnits, 4, exponent, kTouches, 7));
        show("zipf", simulator.run(30));
        show("zipf", simulator.run(60));
        show("zipf", simulator.run(240));
    }
}

TEST(Simulation, Uniform) {
    Simulator simulator(kMachine, kUnits, 1);
    simulator.set_rates(uniform(kUnits, kTouches));
    show("uniform", simulator.run(30));
    show("uniform", simulator.run(60));
}

}  // namespace
}  // namespace memtide::agent
