#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "common/base/ids.h"
#include "common/http/credentials.h"
#include "tiering-agent/fabric/messages.h"
#include "tiering-agent/hotplug/state.h"

namespace memtide::agent {

struct ChannelTiming {
    std::chrono::milliseconds long_poll{
        30'000};  // how long the manager may keep a question for the desired state
    std::chrono::milliseconds heartbeat{10'000};  // a report at least so often
    std::chrono::milliseconds request{
        10'000};                               // to send a report, and beyond long_poll for the desired state
    std::chrono::milliseconds retry_min{200};  // after a failure; doubles, with jitter, up to retry_max
    std::chrono::milliseconds retry_max{10'000};
};

struct ChannelConfig {
    std::string manager;  // "https://host:port", "http://host:port" or "unix:/path"
    HostId host;
    AgentIdentity identity;
    std::shared_ptr<http::Credentials> credentials = http::Credentials::none();
    ChannelTiming timing{};
};

// Keeps the agent and the fabric manager in step: pulls the desired state by long poll, puts the observed one
// on every change and as a heartbeat. Every failure of the manager (not there, errors, garbage, a state for
// another host) is logged once and tried again; what was wanted before stays wanted.
class Channel {
  public:
    // `on_desired` is called on the executor whenever a state arrives that differs from the last one.
    Channel(boost::asio::any_io_executor executor, ChannelConfig config,
            std::function<void(const Desired&)> on_desired);
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    void start();
    // Thread safe.
    void set_observed(Observed observed);
    // Ends both loops; pending requests are dropped. On the executor. The destructor does the same.
    void stop();

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace memtide::agent
