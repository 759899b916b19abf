#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "common/http/client.h"

namespace memtide::emul {

// Connections to the manager that hosts share for their reports, which are short: a host with a long poll
// needs one connection then, not two. Not thread safe.
class ClientPool {
  public:
    ClientPool(boost::asio::any_io_executor executor, std::string manager)
        : executor_(std::move(executor)), manager_(std::move(manager)) {}

    // One that nobody uses, back in the pool when the lease ends.
    class Lease {
      public:
        Lease(ClientPool& pool, std::unique_ptr<http::Client> client)
            : pool_(&pool), client_(std::move(client)) {}
        Lease(Lease&&) noexcept = default;
        Lease& operator=(Lease&&) = delete;
        ~Lease();
        http::Client* operator->() { return client_.get(); }
        // Was cut off in the middle of an exchange: not for others.
        void discard() { client_.reset(); }

      private:
        ClientPool* pool_;
        std::unique_ptr<http::Client> client_;
    };
    Lease take();
    [[nodiscard]] std::unique_ptr<http::Client> make() const;

  private:
    boost::asio::any_io_executor executor_;
    std::string manager_;
    std::vector<std::unique_ptr<http::Client>> idle_;
};

}  // namespace memtide::emul
