#pragma once

#include <optional>

#include <boost/asio/awaitable.hpp>

#include "fabric-manager/rest/routes.h"

// Entity tags for every route, so that no handler has to think of them.
namespace memtide::fm {

// Whether the route answers resources that clients may hold on to: JSON below /v1.
bool is_resource(const Route& route);

// Gives the answer to a GET its ETag, and makes a 304 of it when the client has it already.
void add_etag(const http::Request& request, http::Response& response);

// The refusal of a change whose If-Match or If-None-Match does not hold: 412, or 400 when it cannot be read.
// Compares with what a GET of the same path answers now; what cannot be got has no tag, only "*" fits it.
boost::asio::awaitable<std::optional<http::Response>> refuse_precondition(Context& context,
                                                                          const Route& route,
                                                                          const http::Request& request);

}  // namespace memtide::fm
