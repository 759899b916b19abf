#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "common/http/message.h"

namespace memtide::http {

using Handler = std::function<boost::asio::awaitable<Response>(Request)>;

// Routes by method and path pattern ("/v1/hosts/{host}/desired"; one {name} matches one path segment).
// A path nobody serves answers 404 problem "not-found"; a known path with another method 405 with Allow.
// HEAD is served by GET routes, OPTIONS by listing methods. Filled before serving, then read only.
class Router {
  public:
    void add(std::string method, std::string pattern, Handler handler);
    [[nodiscard]] boost::asio::awaitable<Response> dispatch(Request request) const;
    // method + pattern of every route, for the OpenAPI test.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> routes() const;

  private:
    struct Route {
        std::string method;
        std::string pattern;
        std::vector<std::string> segments;
        Handler handler;
    };
    std::vector<Route> routes_;
};

}  // namespace memtide::http
