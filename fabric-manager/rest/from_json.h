#pragma once

#include <string>
#include <string_view>

#include "fabric-manager/model/agent.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/problem.h"

namespace memtide::fm {

// The body of POST /v1/compositions. Unknown members are refused: a misspelt "ttl" must not be lost.
// Problems: invalid-json, invalid-request, size-zero, size-negative; each names the member.
Outcome<CompositionRequest> read_composition_request(std::string_view body);

// The body of PATCH /v1/compositions/{id}, as strict. A ttl of 0 ends the lease.
Outcome<CompositionChangeRequest> read_composition_change(std::string_view body);

// The body of PUT /v1/hosts/{host}/observed. Unknown members are ignored: agents may be newer than the
// manager. Problems: invalid-json, invalid-request.
Outcome<ObservedReport> read_observed_report(std::string_view body);

// The same for requests that ask for the same, however their JSON is written.
std::string fingerprint(const CompositionRequest& request);

}  // namespace memtide::fm
