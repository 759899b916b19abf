#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>

#include "cxl-emul/hosts/client_pool.h"
#include "cxl-emul/hosts/host_model.h"
#include "cxl-emul/hosts/ledger.h"

namespace memtide::emul {

// The agent channel of one emulated host: long polls for what is wanted, reports what is. Not thread safe;
// made by std::make_shared, since its coroutines keep it.
class Agent : public std::enable_shared_from_this<Agent> {
  public:
    using Identity = ClientPool::Identity;
    // Another host that is mistaken for this one by faults, and what that one shows to the manager.
    struct Neighbour {
        HostId name;
        Identity identity;
    };
    // `identity` is what the host shows. The model, the ledger and the pool outlive it.
    Agent(boost::asio::any_io_executor executor, HostModel& model, Ledger& ledger, ClientPool& pool,
          Identity identity, Neighbour neighbour);

    void start();
    // Ends at once, in the middle of whatever is under way. Idempotent, as start() is.
    void stop();
    [[nodiscard]] bool is_running() const { return running_; }
    // Without a network it goes on acting on what it knows.
    void set_network(bool there);
    // Shows the neighbour's certificate, from the next connection on, which begins now.
    void impersonate(bool on);
    // The model has changed, or may do something now that it could not before.
    void wake();

  private:
    using Self = std::shared_ptr<Agent>;
    // With whom a request is sent: a fault may begin while it is under way.
    struct Caller {
        Identity identity;
        bool impersonates = false;
    };
    [[nodiscard]] Caller caller() const;
    static boost::asio::awaitable<void> ask(Self self, std::unique_ptr<http::Client> client,
                                            bool impersonates);
    void judge(const Result<http::ClientResponse>& answer, bool impersonates);
    static boost::asio::awaitable<void> act(Self self);
    boost::asio::awaitable<bool> report();
    boost::asio::awaitable<void> report_for_another(const Caller& who, std::string body);
    boost::asio::awaitable<unsigned> put_observed(const Caller& who, const HostId& host, std::string body);
    boost::asio::awaitable<void> sleep(std::chrono::microseconds time);
    std::shared_ptr<boost::asio::cancellation_signal> spawn(boost::asio::awaitable<void> coroutine);
    void start_asking();

    boost::asio::any_io_executor executor_;
    HostModel& model_;
    Ledger& ledger_;
    ClientPool& pool_;
    Identity identity_;
    Neighbour neighbour_;
    bool running_ = false;
    bool network_ = true;
    bool impersonates_ = false;
    boost::asio::steady_timer awake_;  // cancelled by wake()
    // One for each life: a coroutine that was stopped may end after the next one has begun.
    std::shared_ptr<boost::asio::cancellation_signal> stop_asking_;
    std::shared_ptr<boost::asio::cancellation_signal> stop_acting_;
};

}  // namespace memtide::emul
