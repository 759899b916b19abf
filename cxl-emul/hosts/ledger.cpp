#include "cxl-emul/hosts/ledger.h"

#include <utility>

#include "common/log/log.h"

namespace memtide::emul {
namespace {

constexpr std::size_t kKeptViolations = 1000;
constexpr std::size_t kKeptSurprises = 100'000;

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

}  // namespace memtide::emul
