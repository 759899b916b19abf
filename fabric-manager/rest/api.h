#pragma once

#include <chrono>
#include <memory>

#include "common/http/router.h"
#include "common/metrics/registry.h"

namespace memtide::fm {

class Gate;
class Manager;

struct RestOptions {
    // A comment on quiet event streams, so that both ends notice a dead connection.
    std::chrono::milliseconds heartbeat{15'000};
    // Decides who may do what; it outlives the RestApi. Null, in tests: everybody may do everything.
    Gate* gate = nullptr;
};

// The REST interface of a manager: translates, decides nothing. Every route is a row of the table in
// routes.cpp and a path of openapi.json. Not thread safe: requests are served on the manager's executor.
// Outlives neither the manager nor the registry.
class RestApi {
  public:
    RestApi(Manager& manager, metrics::Registry& metrics, RestOptions options = {});
    ~RestApi();
    RestApi(const RestApi&) = delete;
    RestApi& operator=(const RestApi&) = delete;

    [[nodiscard]] const http::Router& router() const;

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;  // metrics look at it as long as it is there
};

}  // namespace memtide::fm
