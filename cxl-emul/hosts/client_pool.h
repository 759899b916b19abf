#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include "common/http/client.h"

namespace memtide::emul {

// Connections to the manager that hosts share for their reports, which are short: a host with a long poll
// needs one connection then, not two. A limited number: when all hosts report at once they wait for each
// other. Not thread safe.
class ClientPool {
  public:
    ClientPool(boost::asio::any_io_executor executor, std::string manager)
        : executor_(std::move(executor)), manager_(std::move(manager)) {}

    // One that nobody uses, back in the pool when the lease ends.
    class Lease {
      public:
        Lease(ClientPool& pool, std::unique_ptr<http::Client> client)
            : pool_(&pool), client_(std::move(client)) {}
        Lease(Lease&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)), client_(std::move(other.client_)) {}
        Lease& operator=(Lease&&) = delete;
        Lease(const Lease&) = delete;
        ~Lease();
        http::Client* operator->() { return client_.get(); }
        // Was cut off in the middle of an exchange: not for others.
        void discard() { client_.reset(); }

      private:
        ClientPool* pool_;
        std::unique_ptr<http::Client> client_;
    };
    // First come, first served.
    boost::asio::awaitable<Lease> take();
    [[nodiscard]] std::unique_ptr<http::Client> make() const;

  private:
    class Place;  // in the queue
    void wake_next();

    boost::asio::any_io_executor executor_;
    std::string manager_;
    std::vector<std::unique_ptr<http::Client>> idle_;
    std::size_t in_use_ = 0;
    std::list<boost::asio::steady_timer> queue_;
};

}  // namespace memtide::emul
