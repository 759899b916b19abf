#include "fabric-manager/security/gate.h"

#include <algorithm>
#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/security/host_header.h"

namespace memtide::fm {
namespace {

Time now() { return std::chrono::system_clock::now(); }

bool changes_something(const http::Request& request) {
    return request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS";
}

std::string address_of(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

// What a route does not know might be anything, a secret in the wrong place for one.
std::string query_text(const http::Request& request, std::string_view known) {
    const std::string list = fmt::format(" {} ", known);
    std::string text;
    for (const auto& [name, value] : request.query)
        text += fmt::format("{}{}={}", text.empty() ? "" : "&", name,
                            list.find(fmt::format(" {} ", name)) != std::string::npos ? value : "...");
    return text;
}

http::Response unauthenticated(std::string_view detail, bool wrong) {
    http::Response response = http::problem(401, "unauthenticated", detail);
    response.headers["WWW-Authenticate"] =
        wrong ? R"(Bearer realm="memtide", error="invalid_token")" : R"(Bearer realm="memtide")";
    return response;
}

http::Response too_many(std::chrono::milliseconds wait, std::string_view detail) {
    http::Response response = http::problem(429, "rate-limited", detail);
    response.headers["Retry-After"] = std::to_string((wait.count() + 999) / 1000);
    return response;
}

// The code of a problem document, as far as it is one.
std::string code_of(const http::Response& response) {
    if (response.status < 400 || response.body.size() > 65'536) return {};
    boost::system::error_code error;
    const boost::json::value body = boost::json::parse(response.body, error);
    const auto* const object = error ? nullptr : body.if_object();
    const auto* const code = object ? object->if_contains("code") : nullptr;
    return code && code->is_string() ? std::string(code->get_string()) : std::string();
}

}  // namespace

Gate::Gate(GateOptions options, std::unique_ptr<AuditFile> audit, metrics::Registry& metrics)
    : options_(std::move(options)),
      callers_(options_.rate),
      failures_(options_.failures),
      audit_(std::move(audit)),
      metrics_(metrics) {
    for (const auto& [tenant, rate] : options_.tenants) tenants_.emplace(tenant, RateLimiter(rate, 1));
}

Result<std::unique_ptr<Gate>> Gate::open(GateOptions options, std::unique_ptr<AuditFile> audit,
                                         metrics::Registry& metrics) {
    std::unique_ptr<Gate> gate(new Gate(std::move(options), std::move(audit), metrics));
    if (!gate->options_.authentication) return gate;
    auto authenticator = Authenticator::open(gate->options_.tokens);
    if (!authenticator) return std::unexpected(std::move(authenticator.error()));
    gate->authenticator_ = *std::move(authenticator);
    return gate;
}

void Gate::refuse(Passage& passage, std::string reason, http::Response response) {
    passage.record.allowed = false;
    passage.record.reason = std::move(reason);
    passage.counted = true;  // whoever is refused over and over must not fill the disk
    passage.refusal = std::move(response);
}

void Gate::identify(Passage& passage, http::Request& request) {
    request.caller = anonymous_principal();
    if (!authenticator_) {
        const std::string_view host = request.header("Host").value_or("");
        if (request.peer == "unix" || request.peer.empty() || names_this_machine(host, options_.host_names)) {
            request.caller = local_principal();
            return;
        }
        return refuse(passage, fmt::format("its Host header names {}", host),
                      http::problem(421, "misdirected",
                                    "the Host header does not name this machine; a manager without "
                                    "authentication answers to localhost, loopback addresses and what "
                                    "\"host_names\" in its configuration says"));
    }
    const std::string address = address_of(request.peer);
    if (const auto wait = failures_.look(address, RateLimiter::Clock::now());
        wait && request.header("Authorization"))
        return refuse(passage, "too many wrong credentials",
                      too_many(*wait, "too many wrong credentials came from this address"));
    auto caller = authenticator_->identify(request, now());
    // A token that was made a moment ago works at once.
    if (!caller && read_tokens_again()) caller = authenticator_->identify(request, now());
    if (caller) {
        request.caller = *std::move(caller);
        return;
    }
    (void)failures_.take(address, RateLimiter::Clock::now());
    refuse(passage, caller.error().why, unauthenticated(caller.error().told, true));
}

void Gate::limit_rate(Passage& passage, const http::Request& request) {
    const Principal& caller = caller_of(request);
    const auto at = RateLimiter::Clock::now();
    auto wait = callers_.take(caller.role ? caller.name : address_of(request.peer), at);
    std::string whose = "this caller";
    if (const auto tenant = caller.tenant ? tenants_.find(*caller.tenant) : tenants_.end();
        !wait && tenant != tenants_.end()) {
        wait = tenant->second.take("", at);
        whose = "the tenant " + *caller.tenant;
    }
    if (wait)
        refuse(passage, "rate limit",
               too_many(*wait, fmt::format("{} asks more often than it may; try again in {} ms", whose,
                                           wait->count())));
}

void Gate::authorise(Passage& passage, const http::Request& request, const Door& door) {
    const Principal& caller = caller_of(request);
    if (!caller.has(door.privilege)) {
        if (!caller.role)
            return refuse(passage, "no credentials",
                          unauthenticated("this needs a token (Authorization: Bearer TOKEN) or a client "
                                          "certificate",
                                          false));
        return refuse(passage,
                      fmt::format("role {} lacks {}", to_string(*caller.role), to_string(door.privilege)),
                      http::problem(403, "forbidden",
                                    fmt::format("the role {} may not do this: it lacks the privilege {}",
                                                to_string(*caller.role), to_string(door.privilege))));
    }
    const auto host = request.path_parameters.find("host");
    if (host != request.path_parameters.end() && !caller.speaks_for(HostId(host->second)))
        refuse(passage, "another host's",
               http::problem(403, "forbidden",
                             "an agent may only read and report for the host that its credentials are for"));
}

Gate::Passage Gate::enter(http::Request& request, const Door& door) {
    Passage passage;
    passage.counted = door.frequent;
    passage.change = changes_something(request) && !door.frequent;
    AuditRecord& record = passage.record;
    record.request = next_request_++;
    record.peer = request.peer;
    record.method = request.method;
    record.operation = door.operation;
    record.path = request.path;
    record.query = query_text(request, door.query);
    record.allowed = true;
    identify(passage, request);
    const Principal& caller = caller_of(request);
    record.who = caller.name;
    if (caller.role) record.role = to_string(*caller.role);
    record.tenant = caller.tenant.value_or("");
    if (!passage.refusal) limit_rate(passage, request);
    if (!passage.refusal) authorise(passage, request, door);
    return passage;
}

void Gate::begin(Passage& passage) {
    if (passage.refusal || !passage.change) return;
    if (const auto told = audit_.begin(passage.record, now()); !told)
        refuse(
            passage, "it could not be written to the audit log",
            http::problem(503, "audit-unavailable",
                          "the audit log cannot be written, and without it nothing is changed; reads go on"));
}

metrics::Counter& Gate::decisions(const AuditRecord& record) {
    metrics::Counter*& known = decisions_[{record.allowed, record.role}];
    if (known == nullptr)
        known = &metrics_.counter("memtide_auth_decisions_total", "Requests by what was decided about them.",
                                  {{"decision", record.allowed ? "allowed" : "refused"},
                                   {"role", record.role.empty() ? "none" : record.role}});
    return *known;
}

void Gate::leave(const Passage& passage, const http::Response& response) {
    AuditResult result;
    result.status = response.status;
    result.code = code_of(response);
    if (const auto location = response.headers.find("Location"); location != response.headers.end())
        result.object = location->second;
    decisions(passage.record).add();
    if (passage.change && passage.record.allowed)
        audit_.end(passage.record, result, now());
    else if (passage.counted)
        audit_.count(passage.record, result, now());
    else
        audit_.write(passage.record, result, now());
}

void Gate::tls_refused(const std::string& peer, const std::string& why) {
    AuditRecord record;
    record.request = next_request_++;
    record.who = "anonymous";
    record.peer = peer;
    record.reason = "TLS: " + why;
    audit_.count(record, {}, now());
}

bool Gate::is_still_valid(const Principal& principal) const {
    return !authenticator_ || authenticator_->is_still_valid(principal, now());
}

void Gate::tick() {
    audit_.tick(now());
    if (authenticator_) read_tokens_again();
}

// Whether there are others now.
bool Gate::read_tokens_again() {
    const auto refreshed = authenticator_->refresh();
    if (!refreshed) {
        log::error("the tokens cannot be read again; those of before stay in use, revoked ones too",
                   {{"error", refreshed.error()}});
        tokens_trouble_ = "the tokens cannot be read again, those of before stay in use, revoked ones too: " +
                          refreshed.error().message;
        tell_troubles();
    } else if (*refreshed) {
        log::info("tokens were read again", {{"count", authenticator_->token_count()}});
        tokens_trouble_.reset();
        tell_troubles();
    }
    return refreshed && *refreshed;
}

void Gate::certificates_were_read(const std::optional<Error>& error) {
    certificates_trouble_.reset();
    if (error) {
        log::error("certificates cannot be read again; those of before stay in use", {{"error", *error}});
        certificates_trouble_ =
            "certificates and revocation lists cannot be read again, those of before stay in use: " +
            error->message;
    }
    tell_troubles();
}

std::vector<std::string> Gate::troubles() const {
    std::vector<std::string> all;
    if (tokens_trouble_) all.push_back(*tokens_trouble_);
    if (certificates_trouble_) all.push_back(*certificates_trouble_);
    return all;
}

void Gate::tell_troubles() {
    const auto gauge = [this](const char* kind) -> metrics::Gauge& {
        return metrics_.gauge("memtide_fm_credentials_stale",
                              "1 while what changed on the disk cannot be read, and what was before is used.",
                              {{"kind", kind}});
    };
    gauge("tokens").set(tokens_trouble_ ? 1 : 0);
    gauge("certificates").set(certificates_trouble_ ? 1 : 0);
}

}  // namespace memtide::fm
