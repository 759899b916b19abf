#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include "common/base/error.h"
#include "cxl-emul/rack/rack_host.h"
#include "cxl-emul/rack/supervisor.h"
#include "cxl-emul/switch/switch.h"

namespace memtide::emul {

// A rack: the switches and the hosts of a topology. All on one single-threaded executor.
class Rack {
  public:
    Rack(boost::asio::any_io_executor executor, RackOptions options, std::string folder);
    ~Rack();
    Rack(const Rack&) = delete;
    Rack& operator=(const Rack&) = delete;

    // Binds the switches' listeners and opens all media; nothing else runs yet.
    Result<> open_switches();
    // Serves the switches, builds the guest image, chooses the accelerator, starts every host. Failures show
    // in failure().
    boost::asio::awaitable<void> boot();
    // Shuts every host down and stops the switches.
    boost::asio::awaitable<void> stop();

    Result<std::shared_ptr<RackHost>> host(const std::string& name) const;
    [[nodiscard]] bool ready() const;           // every host is
    [[nodiscard]] std::string failure() const;  // why it will not get ready; empty as long as it may
    boost::asio::awaitable<boost::json::object> status();

    // Binds a device ("mld0:1", "sld0") to a vPPB of a host, or unbinds what is there, with FM API commands
    // as any manager. `switch_name` may be empty when the host is attached to one switch only.
    boost::asio::awaitable<Result<boost::json::object>> bind(std::string host, unsigned vppb,
                                                             std::string device);
    // `waiting` is told what the unbind waits for, as long as it does: "region0 of mem0 is in use: ...".
    using Waiting = std::function<void(const std::string&)>;
    boost::asio::awaitable<Result<boost::json::object>> unbind(std::string host, std::string switch_name,
                                                               unsigned vppb, fmapi::UnbindOption option,
                                                               Waiting waiting);

    // After open_switches(): they live as long as this does.
    [[nodiscard]] std::vector<Switch*> switches() const;
    [[nodiscard]] const Topology& topology() const;

    // Called (soon, from the executor) when something that status() shows has changed.
    void on_change(std::function<void()> listener) { changed_ = std::move(listener); }

  private:
    struct State;
    void host_changed(const std::string& name);
    boost::asio::awaitable<void> clean_bindings(std::string host);
    std::shared_ptr<State> state_;
    std::function<void()> changed_;
};

}  // namespace memtide::emul
