#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/app/live_config.h"

namespace memtide::agent {

// Tiering beside whatever else the agent does: a thread that looks and moves, and a unix socket that tells
// what it does (GET /v1/status, /metrics).
class TieringService {
  public:
    // Errors: kUnavailable when there is no way to see which pages are touched, or the socket cannot be had;
    // kAlreadyExists when another agent moves pages on this machine; kPermission without root. `socket` is a
    // path; `files` and `config` must live as long as the service.
    static Result<std::unique_ptr<TieringService>> start(const boost::asio::any_io_executor& executor,
                                                         Files& files, LiveConfig& config,
                                                         const std::string& socket);
    ~TieringService();
    TieringService(const TieringService&) = delete;
    TieringService& operator=(const TieringService&) = delete;

    // As AgentApi::reload(), on the executor's thread.
    Result<LiveConfig::Change> reload(std::string_view whose);
    // As Balancer::set_leaving().
    void set_leaving(std::set<int> nodes);

    // The thread ends within a batch of moves, what is asked at the socket within a second.
    boost::asio::awaitable<void> stop();

  private:
    struct Impl;
    explicit TieringService(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace memtide::agent
