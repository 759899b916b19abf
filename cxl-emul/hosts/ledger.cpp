#include "cxl-emul/hosts/ledger.h"

#include <utility>

#include "common/log/log.h"

namespace memtide::emul {
namespace {

constexpr std::size_t kKeptViolations = 1000;
constexpr std::size_t kKeptSurprises = 100'000;
constexpr std::chrono::seconds kQuiet{30};  // thousands may be refused for the same reason

}  // namespace

void Ledger::violation(Violation what) {
    log::error("violation",
               {{"kind", what.kind}, {"host", what.host}, {"serial", what.serial}, {"detail", what.detail}});
    ++violation_count_;
    if (violations_.size() < kKeptViolations) violations_.push_back(std::move(what));
}

void Ledger::surprise(SurpriseRemoval what) {
    surprises_.push_back(std::move(what));
    if (surprises_.size() > kKeptSurprises) surprises_.pop_front();
}

void Ledger::refused(const HostId& host, const std::string& why) {
    ++refused_agents;
    const auto now = std::chrono::steady_clock::now();
    if (now < quiet_until_) return;
    quiet_until_ = now + kQuiet;
    log::warning("the manager does not let an agent in",
                 {{"host", host}, {"why", why}, {"refused_so_far", refused_agents}});
}

}  // namespace memtide::emul
