#include "tiering-agent/balance/decision_log.h"

#include "common/base/bytes.h"
#include "common/log/log.h"
#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {
std::string DecisionLog::reason_of(const Exchange& exchange) {
    if (exchange.promoted_pages > 0)
        return exchange.demoted_pages > 0 ? "warmer for colder" : "fills free memory";
    return exchange.demoted_pages > 0 ? "makes room" : "nothing could be moved";
}

void DecisionLog::note(const Exchange& exchange) {
    log::debug("exchange", {{"target", exchange.target},
                            {"fast", exchange.fast},
                            {"slow", exchange.slow},
                            {"up", size_of_pages(exchange.promoted_pages)},
                            {"down", size_of_pages(exchange.demoted_pages)},
                            {"failed", size_of_pages(exchange.failed_pages)},
                            {"hit_before", exchange.hit_before},
                            {"hit_after", exchange.hit_after},
                            {"reason", reason_of(exchange)}});
    Sum& sum = sums_[{exchange.target, exchange.fast, exchange.slow}];
    if (sum.exchanges++ == 0) {
        sum.all = exchange;
        return;
    }
    sum.all.promoted_pages += exchange.promoted_pages;
    sum.all.demoted_pages += exchange.demoted_pages;
    sum.all.failed_pages += exchange.failed_pages;
    sum.all.hit_after = exchange.hit_after;
}

void DecisionLog::flush(Time now) {
    if (sums_.empty() || now < told_ + kEvery) return;
    told_ = now;
    for (const auto& [key, sum] : sums_)
        log::info("pages moved", {{"target", sum.all.target},
                                  {"fast", sum.all.fast},
                                  {"slow", sum.all.slow},
                                  {"up", size_of_pages(sum.all.promoted_pages)},
                                  {"down", size_of_pages(sum.all.demoted_pages)},
                                  {"failed", size_of_pages(sum.all.failed_pages)},
                                  {"exchanges", sum.exchanges},
                                  {"hit_before", sum.all.hit_before},
                                  {"hit_after", sum.all.hit_after},
                                  {"reason", reason_of(sum.all)}});
    sums_.clear();
}

}  // namespace memtide::agent
