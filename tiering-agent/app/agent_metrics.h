#pragma once

#include "common/metrics/registry.h"
#include "tiering-agent/balance/balancer.h"

namespace memtide::agent {

// Sets what docs/tiering.md lists under "What it tells".
void set_metrics(metrics::Registry& registry, const BalanceStatus& status);

}  // namespace memtide::agent
