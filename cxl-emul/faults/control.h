#pragma once

#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/http/router.h"
#include "common/http/server.h"
#include "cxl-emul/faults/fault_board.h"

namespace memtide::emul {

// Faults over HTTP. docs/faults.md describes the calls:
//   GET    /v1/faults               what waits, what is active, what is over
//   POST   /v1/faults               begins the one in the body (YAML or JSON, as in a scenario file)
//   POST   /v1/scenarios?speed=N    plays the scenario in the body
//   DELETE /v1/faults/{id}          ends one
//   DELETE /v1/faults               ends all
// The board outlives the router.
void add_fault_routes(http::Router& router, FaultBoard& board);

// The same with a server of its own, for programs that serve nothing else on it.
class FaultService {
  public:
    FaultService(boost::asio::any_io_executor executor, Equipment& equipment);

    [[nodiscard]] FaultBoard& board() { return board_; }
    // For what else is to be served there; before listen().
    [[nodiscard]] http::Router& router() { return router_; }
    // "127.0.0.1:PORT" or "unix:/PATH"; where it really listens. Errors as http::Server::listen(), and
    // kInvalidArgument for an address that is not loopback: whoever can connect can do all of it.
    Result<std::string> listen(const std::string& address);
    boost::asio::awaitable<void> stop();

  private:
    FaultBoard board_;
    http::Router router_;
    http::Server server_;
};

}  // namespace memtide::emul
