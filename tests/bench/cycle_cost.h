#pragma once

namespace memtide::bench {

// Prints `cycle_cost_1k_ms`, `cycle_cost_100k_ms` and `cycle_cost_ratio_100k_to_1k`: processor time of this
// process for one composition from create to Released, journal on the disk, beside 1,000 and beside 100,000
// that stay Online.
void measure_cycle_cost();

}  // namespace memtide::bench
