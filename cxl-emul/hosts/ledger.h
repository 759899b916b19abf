#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"

namespace memtide::emul {

// What a host's side has seen that must never be: "two-hosts", "not-erased", "not-erased-online",
// "changed-under-host", "unbound-online", "given-back-online", "foreign-report", "foreign-certificate".
struct Violation {
    std::string kind;
    HostId host;
    SerialNumber serial;
    std::string detail;
};

// Memory that was online at a host and was taken from it without asking. Right after a forced release, wrong
// otherwise: who knows what was forced compares.
struct SurpriseRemoval {
    HostId host;
    SerialNumber serial;
};

// What the emulated hosts and switches have done, and what should not have happened to them. Not thread safe.
class Ledger {
  public:
    void violation(Violation what);
    void surprise(SurpriseRemoval what);
    // The manager, or TLS, does not let an agent in; logged once and then now and then.
    void refused(const HostId& host, const std::string& why);

    [[nodiscard]] const std::vector<Violation>& violations() const { return violations_; }  // the first 1000
    [[nodiscard]] std::uint64_t violation_count() const { return violation_count_; }
    [[nodiscard]] const std::deque<SurpriseRemoval>& surprises() const {
        return surprises_;
    }  // the last ones

    // Counts since the start.
    std::uint64_t plugged = 0;
    std::uint64_t unplugged = 0;
    std::uint64_t onlined = 0;
    std::uint64_t offlined = 0;
    std::uint64_t reports = 0;
    std::uint64_t refused_reports = 0;
    std::uint64_t refused_agents = 0;        // polls and connections, by refused()
    std::uint64_t refused_certificates = 0;  // of these and of reports: with another host's certificate
    std::uint64_t reboots = 0;
    std::uint64_t power_cycles = 0;

  private:
    std::vector<Violation> violations_;
    std::uint64_t violation_count_ = 0;
    std::deque<SurpriseRemoval> surprises_;
    std::chrono::steady_clock::time_point quiet_until_;
};

}  // namespace memtide::emul
