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

// Connections to the manager for reports, which are short. Hosts that show the same to the manager share
// them: without certificates a host with a long poll needs one connection then, not two. With a certificate
// of its own each host needs two, and of those that are idle a limited number stays open. A limited number is
// in use: when all hosts report at once they wait for each other. Not thread safe.
class ClientPool {
  public:
    using Identity = std::shared_ptr<http::Credentials>;  // the same object: the same connections

    static constexpr std::size_t kMostIdle = 64;
    // With a certificate of each host's own: of as many hosts; the others shake hands for each report.
    static constexpr std::size_t kMostIdleOfMany = 1024;

    ClientPool(boost::asio::any_io_executor executor, std::string manager, std::size_t most_idle = kMostIdle)
        : executor_(std::move(executor)), manager_(std::move(manager)), most_idle_(most_idle) {}

    // One that nobody uses, back in the pool when the lease ends.
    class Lease {
      public:
        Lease(ClientPool& pool, Identity identity, std::unique_ptr<http::Client> client)
            : pool_(&pool), identity_(std::move(identity)), client_(std::move(client)) {}
        Lease(Lease&& other) noexcept
            : pool_(std::exchange(other.pool_, nullptr)),
              identity_(std::move(other.identity_)),
              client_(std::move(other.client_)) {}
        Lease& operator=(Lease&&) = delete;
        Lease(const Lease&) = delete;
        ~Lease();
        http::Client* operator->() { return client_.get(); }
        // Was cut off in the middle of an exchange: not for others.
        void discard() { client_.reset(); }

      private:
        ClientPool* pool_;
        Identity identity_;
        std::unique_ptr<http::Client> client_;
    };
    // First come, first served.
    boost::asio::awaitable<Lease> take(Identity identity);
    [[nodiscard]] std::unique_ptr<http::Client> make(Identity identity) const;
    [[nodiscard]] std::size_t idle_count() const { return idle_.size(); }

  private:
    class Place;  // in the queue
    void wake_next();
    std::unique_ptr<http::Client> take_idle(const Identity& identity);

    struct Idle {
        Identity identity;
        std::unique_ptr<http::Client> client;
    };

    boost::asio::any_io_executor executor_;
    std::string manager_;
    std::size_t most_idle_;
    std::vector<Idle> idle_;  // the last one that was used is the last here
    std::size_t in_use_ = 0;
    std::list<boost::asio::steady_timer> queue_;
};

}  // namespace memtide::emul
