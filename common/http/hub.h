#pragma once

#include <chrono>
#include <memory>
#include <unordered_set>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "common/http/router.h"
#include "common/http/server.h"

namespace memtide::http {

class Connection;

// What a server's connections have in common. One timer watches over all of them: a timer an operation would
// cost more than answering a small request. Lives as long as the last connection. On the server's executor.
class Hub : public std::enable_shared_from_this<Hub> {
  public:
    Hub(boost::asio::any_io_executor executor, const Router& router, ServerLimits limits,
        ServerSecurity security);

    // Connections come and go by themselves.
    void add(Connection& connection);
    void remove(Connection& connection);
    [[nodiscard]] std::size_t connection_count() const { return connections_.size() - surplus_; }
    [[nodiscard]] std::size_t surplus_count() const { return surplus_; }  // over the limit, being told so

    // Closes the connection that has been idle the longest; false when none has been for a second.
    bool close_idlest();
    // Ends connections between requests and streams; requests on their way may finish.
    void begin_stopping();
    // Cancels every handler and closes every connection.
    void abandon();
    void stop_watching() { timer_.cancel(); }

    const boost::asio::any_io_executor executor;
    const Router& router;
    const ServerLimits limits;
    const ServerSecurity security;
    bool stopping = false;

  private:
    void watch();
    void sweep();
    [[nodiscard]] std::vector<std::shared_ptr<Connection>> snapshot() const;

    std::unordered_set<Connection*> connections_;
    boost::asio::steady_timer timer_;
    std::chrono::milliseconds tick_;
    std::size_t surplus_ = 0;
    bool watching_ = false;
};

}  // namespace memtide::http
