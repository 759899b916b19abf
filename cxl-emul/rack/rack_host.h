#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include "cxl-emul/qemu/qemu_host.h"
#include "cxl-emul/rack/guest_link.h"

namespace memtide::emul {

// One host of a rack: its QEMU, the connection to the helper inside, its console, its agent's log. All on one
// single-threaded executor.
class RackHost : public std::enable_shared_from_this<RackHost> {
  public:
    using ConsoleListener = std::function<void(std::string_view)>;

    // `agent`: command line of the tiering agent to keep running in the guest; empty: none. `changed` is
    // called whenever what status() shows may have changed.
    RackHost(boost::asio::any_io_executor executor, HostPlan plan, std::string folder,
             std::vector<std::string> agent, std::function<void()> changed);
    ~RackHost();

    boost::asio::awaitable<Result<>> start();
    // Asks the guest to power off, then ends QEMU.
    boost::asio::awaitable<void> stop();

    [[nodiscard]] QemuHost& qemu() { return *qemu_; }
    [[nodiscard]] const std::string& name() const { return qemu_->plan().name; }
    // kUnavailable with what the host does instead, unless it is ready.
    Result<std::shared_ptr<GuestLink>> guest();
    // Why it is not ready and will not be; empty otherwise.
    [[nodiscard]] std::string failure() const;
    boost::json::object status() const;

    // Everything that the serial console says from now on, after the last that it said. Gives a number for
    // stop_listening().
    int listen(ConsoleListener listener);
    void stop_listening(int number);

  private:
    boost::asio::awaitable<void> configure();
    static boost::asio::awaitable<void> watch_boot(std::weak_ptr<RackHost> host);
    boost::asio::awaitable<bool> boot_again_if_stuck();
    void take_event(const boost::json::object& event);
    void console(std::string_view bytes);
    void log_agent(std::string_view bytes);

    boost::asio::any_io_executor executor_;
    std::vector<std::string> agent_;
    std::function<void()> changed_;
    std::unique_ptr<QemuHost> qemu_;
    std::shared_ptr<GuestLink> link_;
    std::string configure_error_;
    std::string kernel_;
    std::string agent_state_;
    std::uint64_t agent_restarts_ = 0;
    int agent_log_ = -1;
    std::string recent_console_;
    std::chrono::steady_clock::time_point last_console_;
    int boots_again_ = 0;
    std::map<int, ConsoleListener> listeners_;
    int next_listener_ = 1;
};

}  // namespace memtide::emul
