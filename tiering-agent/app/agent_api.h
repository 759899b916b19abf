#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include "common/http/router.h"
#include "common/metrics/registry.h"
#include "tiering-agent/app/live_config.h"
#include "tiering-agent/balance/balancer.h"
#include "tiering-agent/balance/inspector.h"

namespace memtide::agent {

// What the agent answers at its socket (docs/tiering.md, "What it tells"). Runs on one executor, which one
// thread serves; what only the balancing thread knows is asked of that.
class AgentApi {
  public:
    // All of them outlive it.
    AgentApi(boost::asio::any_io_executor executor, Files& files, Balancer& balancer, LiveConfig& config);

    [[nodiscard]] const http::Router& router() const { return router_; }
    // Reads the configuration again; `whose` is who wants it, for the log. `applied`, if any, is called on
    // the balancing thread once it is in service. Errors as LiveConfig::reload().
    Result<LiveConfig::Change> reload(std::string_view whose, std::function<void()> applied = {});

  private:
    using Question = std::function<Result<boost::json::object>(const Inspector&)>;
    struct Answer;
    [[nodiscard]] http::Response status() const;
    [[nodiscard]] http::Response metrics();
    [[nodiscard]] http::Response generations(bool begin);
    boost::asio::awaitable<http::Response> ask(Question question);
    boost::asio::awaitable<http::Response> reload_for(http::Request request);
    boost::asio::awaitable<http::Response> explain(http::Request request);
    boost::asio::awaitable<http::Response> heat(http::Request request);

    boost::asio::any_io_executor executor_;
    Files& files_;
    Balancer& balancer_;
    LiveConfig& config_;
    metrics::Registry registry_;
    http::Router router_;
};

}  // namespace memtide::agent
