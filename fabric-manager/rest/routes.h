#pragma once

#include <span>
#include <string_view>

#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/security/role.h"

namespace memtide::fm {

struct Route {
    std::string_view method;
    std::string_view path;       // as in openapi.json
    std::string_view operation;  // operationId there
    Answer (*handler)(Context&, http::Request);
    Privilege privilege;
    std::string_view query = {};  // the parameters it knows, with spaces between; others are refused
    bool frequent = false;        // asked all the time: its allowed requests are counted in the audit log
    bool quiet = false;  // its duration says nothing: it streams, or waits for something to happen, with or
                         // without "wait"
    // Its handler heeds If-Match itself, with nothing in between; for the others it is compared before.
    bool conditional = false;
};

// All of the interface.
std::span<const Route> routes();

}  // namespace memtide::fm
