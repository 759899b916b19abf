#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "common/base/error.h"
#include "fabric-manager/model/time.h"
#include "fabric-manager/security/audit_file.h"

namespace memtide::fm {

// One decision about one request. Nothing in it is secret: tokens are named by their ids.
struct AuditRecord {
    std::uint64_t request = 0;  // ties the lines of one request together
    std::string who;            // Principal::name
    std::string role;           // empty: none
    std::string tenant;
    std::string peer;  // address and port, or "unix"
    std::string method;
    std::string operation;  // operationId of the route; empty when there was no request (TLS)
    std::string path;
    std::string query;
    bool allowed = false;
    std::string reason;  // why not
};

// What became of an allowed request.
struct AuditResult {
    unsigned status = 0;
    std::string code;    // problem code of a refusal
    std::string object;  // what came into being: the Location of the answer
};

// Writes decisions as JSON lines. What is asked all the time (long polls, heartbeats, probes) and is allowed
// is counted and told once a minute; so is who is refused over and over. Not thread safe.
class AuditLog {
  public:
    static constexpr std::chrono::seconds kPeriod{60};

    // Null: decisions are not kept.
    explicit AuditLog(std::unique_ptr<AuditFile> file) : file_(std::move(file)) {}
    ~AuditLog() { flush(); }
    AuditLog(const AuditLog&) = delete;
    AuditLog& operator=(const AuditLog&) = delete;

    // Before a change is made; when it fails, the change must not be made.
    Result<> begin(const AuditRecord& record, Time now);
    // After it was made.
    void end(const AuditRecord& record, const AuditResult& result, Time now);
    // The whole of a request that changes nothing, or was refused.
    void write(const AuditRecord& record, const AuditResult& result, Time now);
    // As write(), counted.
    void count(const AuditRecord& record, const AuditResult& result, Time now);

    // Once a second or so: writes counts that are due, and syncs.
    void tick(Time now);
    void flush();
    Result<> reopen();
    [[nodiscard]] bool is_failing() const { return failing_; }
    [[nodiscard]] std::uint64_t lost_lines() const { return lost_; }

  private:
    struct Counted {
        AuditRecord first;
        AuditResult result;
        std::uint64_t count = 0;
        Time began;
        Time last;
    };
    using Key = std::tuple<std::string, std::string, std::string, unsigned>;
    Result<> append(const std::string& line);
    void write_counted(const Counted& counted);

    std::unique_ptr<AuditFile> file_;
    std::map<Key, Counted> counted_;
    bool failing_ = false;
    std::uint64_t lost_ = 0;
};

}  // namespace memtide::fm
