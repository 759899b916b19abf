#include "fabric-manager/rest/problem_table.h"

#include <array>

#include <fmt/format.h>

#include "fabric-manager/model/tenant.h"
#include "fabric-manager/rest/answer.h"

namespace memtide::fm {

std::span<const ProblemRow> problem_table() {
    static constexpr std::array table{
        // What the request looks like.
        ProblemRow{problem::kInvalidJson, 400, "the body is not JSON, or not as this manager takes it",
                   "correct it at the line and column that the detail names"},
        ProblemRow{problem::kInvalidRequest, 0, "a member, a parameter, a header or the HTTP itself is wrong",
                   "correct what the detail names; GET /v1/openapi.json has what each call takes"},
        ProblemRow{problem::kUnsupportedMediaType, 415, "the body is not plain application/json in UTF-8",
                   "send Content-Type: application/json, without a Content-Encoding"},
        ProblemRow{"method-not-allowed", 405, "the path does not serve this method", "see the Allow header"},
        ProblemRow{"body-too-large", 413, "the body is larger than limits: body",
                   "send less, or raise the limit"},
        ProblemRow{"headers-too-large", 431, "the header is larger than 16 KiB",
                   "send fewer or shorter header fields"},
        ProblemRow{"request-timeout", 408, "the request was not complete within limits: request_timeout",
                   "send it again, faster"},
        // Who asks.
        ProblemRow{"unauthenticated", 401, "it needs credentials, or those that came are wrong",
                   "send a token (Authorization: Bearer) or a client certificate"},
        ProblemRow{problem::kForbidden, 403, "the caller's role may not do it, or not there",
                   "ask somebody whose role has the privilege that the detail names"},
        ProblemRow{"misdirected", 421, "without authentication: the Host header does not name this machine",
                   "use localhost or its address, or add the name to host_names"},
        ProblemRow{"rate-limited", 429, "the caller asks too often, or sent wrong credentials too often",
                   "wait as long as Retry-After says"},
        ProblemRow{"tls-required", 400, "plain HTTP where TLS is spoken", "use https://"},
        ProblemRow{problem::kUnknownTenant, 422, "no tenant of the configuration has this name",
                   "GET /v1/tenants has those that there are"},
        ProblemRow{problem::kHostNotAllowed, 403, "the tenant may not compose for this host",
                   "take one of the hosts of GET /v1/tenants/NAME"},
        ProblemRow{problem::kQuotaExceeded, 409, "the tenant would have more than its quota",
                   "release something, or have the quota raised"},
        ProblemRow{"audit-unavailable", 503, "the audit log cannot be written: nothing was changed",
                   "make room on the disk of the audit log"},
        // What it names.
        ProblemRow{problem::kNotFound, 404, "nothing is served there, or nothing has that name",
                   "look at the list that the path belongs to"},
        ProblemRow{problem::kUnknownComposition, 404, "no composition has this id",
                   "list them; ended ones are forgotten after limits: ended_compositions newer ones"},
        ProblemRow{problem::kUnknownHost, 0, "no host has this name: 404 in a path, 422 in a body",
                   "GET /v1/hosts has those of the configuration"},
        // What it asks for.
        ProblemRow{problem::kSizeZero, 422, "a composition of nothing", "ask for at least 256MiB"},
        ProblemRow{problem::kSizeNegative, 422, "a negative size", "ask for at least 256MiB"},
        ProblemRow{problem::kSizeNotMultiple, 422, "the size does not fit the granule of CXL memory",
                   "round it up to a multiple of 256MiB"},
        ProblemRow{problem::kBadPlacement, 422, "no fabric can place memory like that",
                   "correct the ways or the policy that the detail names"},
        ProblemRow{problem::kExceedsCapacity, 422, "all devices that the host reaches have less than this",
                   "ask for less, or attach more devices"},
        ProblemRow{problem::kExceedsLargestDevice, 422, "no device is as large as this, and it must be one",
                   "ask for less, or allow more with placement: max_devices"},
        ProblemRow{problem::kExceedsFree, 409, "there is less free memory than this",
                   "release something, or ask for less"},
        ProblemRow{
            problem::kNoFittingDevice, 409,
            "there is enough free memory, but not on so few devices, or not in equal parts",
            "`excluded` says what each device offers: ask for less, for more devices, or for fewer ways"},
        ProblemRow{problem::kLimitExceeded, 409, "there is memory, but the limits of the placement forbid it",
                   "`excluded` says which limit kept which device out"},
        ProblemRow{problem::kReserved, 409, "what is free is kept in reserve",
                   "release something, or ask an operator who may use the reserve"},
        ProblemRow{problem::kNoFreeVppb, 409, "the host's virtual switch has no free port",
                   "release one of the host's compositions"},
        ProblemRow{problem::kHostNotReachable, 503,
                   "no switch of the host answers, or the host is held: it reboots all the time",
                   "try again when GET /v1/switches has it up and `held` of the host is null"},
        // What it meets.
        ProblemRow{problem::kIdempotencyConflict, 409,
                   "the Idempotency-Key was used with another body before",
                   "use a new key for a new request"},
        ProblemRow{problem::kCompositionEnded, 409, "the composition is Released or Failed already",
                   "nothing is left to do"},
        ProblemRow{problem::kNotOnline, 409,
                   "it was never online, or is on its way out: it cannot be resized",
                   "wait until it is Online"},
        ProblemRow{problem::kCannotShrink, 409,
                   "LDs shrink as a whole, and there is no smaller one in exchange",
                   "take one of the sizes that the detail names"},
        ProblemRow{problem::kExchangeUnderWay, 409,
                   "it shrinks by an exchange: memory comes before memory goes",
                   "wait until it is Online, or ask for the size of before to undo it"},
        ProblemRow{problem::kNotQuarantined, 404, "no LD with that serial number is in quarantine",
                   "GET /v1/devices has those whose use is quarantined"},
        ProblemRow{problem::kPreconditionFailed, 412,
                   "it has changed since: the ETag is not that of If-Match",
                   "get it again, and decide again"},
        ProblemRow{problem::kNotYourComposition, 422, "an agent reported about memory of another host",
                   "nothing of the report was taken; check the agent's host name"},
        // How the manager is.
        ProblemRow{"too-many-connections", 503, "limits: connections are open", "try again in a moment"},
        ProblemRow{problem::kShuttingDown, 503, "the manager is stopping", "try again in a moment"},
        ProblemRow{problem::kStorageFull, 503,
                   "the disk is full: the request could not be made durable and was not carried out",
                   "make room on the disk of the state file, or raise limits: state"},
        ProblemRow{problem::kStorageReadOnly, 503,
                   "the disk is read-only: the request could not be made durable and was not carried out",
                   "see docs/operations.md; it accepts again as soon as it can write"},
        ProblemRow{problem::kStorageFailed, 503,
                   "writing failed: the request could not be made durable and was not carried out",
                   "see the log and docs/operations.md; it accepts again as soon as it can write"},
        ProblemRow{problem::kInternalError, 500, "a fault of the manager", "its log says what it was"},
    };
    return table;
}

std::string markdown_row(const ProblemRow& row) {
    return fmt::format("| `{}` | {} | {} | {} |", row.code,
                       row.status == 0 ? "several" : std::to_string(row.status), row.meaning, row.remedy);
}

}  // namespace memtide::fm
