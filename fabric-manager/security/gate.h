#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/message.h"
#include "common/metrics/registry.h"
#include "fabric-manager/security/audit_log.h"
#include "fabric-manager/security/authenticator.h"
#include "fabric-manager/security/rate_limiter.h"

namespace memtide::fm {

struct GateOptions {
    bool authentication = false;  // else everybody is local_principal()
    std::string tokens{};         // path of the token file
    std::vector<std::string>
        host_names{};      // further names that a Host header may have without authentication
    Rate rate{};           // of each caller: token, certificate, or address when anonymous
    Rate failures{1, 20};  // of wrong credentials from one address
    std::map<std::string, Rate> tenants{};  // of all requests of a tenant together
};

// What the gate has to know of a route.
struct Door {
    std::string_view operation;
    Privilege privilege = Privilege::kReadFabric;
    bool frequent = false;        // asked all the time: counted in the audit log
    std::string_view query = {};  // parameters whose values may be logged, with spaces between
};

// Decides about every request before its handler sees it: who is it, how often did it ask, may it. Decisions
// about single compositions are made behind it, with what is attached to the request. Not thread safe.
class Gate {
  public:
    // `audit` without a file keeps nothing. Errors as load_tokens().
    static Result<std::unique_ptr<Gate>> open(GateOptions options, std::unique_ptr<AuditFile> audit,
                                              metrics::Registry& metrics);

    // One request on its way through.
    struct Passage {
        AuditRecord record;
        bool counted = false;                   // how the audit log keeps it
        bool change = false;                    // told before it is made
        std::optional<http::Response> refusal;  // what to answer; nothing: let it through
    };
    // Attaches the caller to the request.
    Passage enter(http::Request& request, const Door& door);
    // A refusal that is decided behind the gate, before the handler: `reason` is for the audit log.
    static void refuse(Passage& passage, std::string reason, http::Response response);
    // Once nothing speaks against it, and before anything is changed: a change that cannot be told to the
    // audit log is refused (503 audit-unavailable).
    void begin(Passage& passage);
    // With the answer that goes out.
    void leave(const Passage& passage, const http::Response& response);

    // Told by the HTTP server.
    void tls_refused(const std::string& peer, const std::string& why);
    // Whether a caller of some time ago would be let in now.
    [[nodiscard]] bool is_still_valid(const Principal& principal) const;

    // What is wrong with what the gate goes by, for people; empty when nothing is.
    [[nodiscard]] std::vector<std::string> troubles() const;
    // Told by whoever reads the certificates: why they could not be read again; nothing: they could.
    void certificates_were_read(const std::optional<Error>& error);

    // Once a second: what changed on the disk, what is due.
    void tick();
    Result<> reopen_audit() { return audit_.reopen(); }
    [[nodiscard]] const AuditLog& audit() const { return audit_; }

  private:
    Gate(GateOptions options, std::unique_ptr<AuditFile> audit, metrics::Registry& metrics);
    bool read_tokens_again();
    void tell_troubles();
    void identify(Passage& passage, http::Request& request);
    void limit_rate(Passage& passage, const http::Request& request);
    void authorise(Passage& passage, const http::Request& request, const Door& door);
    metrics::Counter& decisions(const AuditRecord& record);

    GateOptions options_;
    std::optional<Authenticator> authenticator_;
    RateLimiter callers_;
    RateLimiter failures_;
    std::map<std::string, RateLimiter> tenants_;
    AuditLog audit_;
    metrics::Registry& metrics_;
    std::map<std::pair<bool, std::string>, metrics::Counter*> decisions_;  // by allowed and role
    std::uint64_t next_request_ = 1;
    std::optional<std::string> tokens_trouble_;        // those of before are in use
    std::optional<std::string> certificates_trouble_;  // so
};

}  // namespace memtide::fm
