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
// HEAD is served by GET routes, OPTIONS by listing methods. The first route that matches wins. Filled before
// serving, then read only; must live as long as any response is on its way.
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
    static bool matches(const Route& route, const std::vector<std::string>& path);
    std::vector<Route> routes_;
};

}  // namespace memtide::http
