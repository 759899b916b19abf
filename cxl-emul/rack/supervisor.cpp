#include "cxl-emul/rack/supervisor.h"

#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/daemon/daemon.h"
#include "common/log/log.h"
#include "cxl-emul/control/switch_control.h"
#include "cxl-emul/faults/control.h"
#include "cxl-emul/rack/control_server.h"
#include "cxl-emul/rack/rack.h"
#include "cxl-emul/rack/rack_equipment.h"

namespace memtide::emul {
namespace asio = boost::asio;

namespace {

// Stops the rack once, however many ask, and tells each when it is done.
class Stopper {
  public:
    Stopper(asio::io_context& context, Rack& rack) : context_(context), rack_(rack) {}

    void stop(std::function<void()> stopped) {
        waiting_.push_back(std::move(stopped));
        if (std::exchange(started_, true)) return;
        log::info("stopping", {});
        asio::co_spawn(context_, rack_.stop(), [this](const std::exception_ptr&) {
            for (const auto& tell : waiting_) tell();
            // What was said last still has to reach the clients.
            last_words_.expires_after(std::chrono::milliseconds(100));
            last_words_.async_wait([this](const boost::system::error_code&) { context_.stop(); });
        });
    }

  private:
    asio::io_context& context_;
    Rack& rack_;
    std::vector<std::function<void()>> waiting_;
    asio::steady_timer last_words_{context_};
    bool started_ = false;
};

// Plays the scenario as soon as every host is ready.
asio::awaitable<void> play_when_ready(Rack& rack, FaultService& faults, Scenario scenario, double speed) {
    asio::steady_timer moment(co_await asio::this_coro::executor);
    while (!rack.ready()) {
        if (!rack.failure().empty()) co_return;
        moment.expires_after(std::chrono::milliseconds(100));
        co_await moment.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    if (const auto played = faults.board().play(scenario, speed); !played)
        log::error("the scenario cannot be played", {{"error", played.error()}});
}

// Completes when another process ends; at once when there is none of that number.
asio::awaitable<void> wait_for_process(int pid) {
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (handle < 0) co_return;
    asio::posix::stream_descriptor process(co_await asio::this_coro::executor, handle);
    co_await process.async_wait(asio::posix::stream_descriptor::wait_read,
                                asio::as_tuple(asio::use_awaitable));
}

}  // namespace

int run_supervisor(RackOptions options, RunFolder folder,
                   const std::function<void(const Result<>&)>& opened) {
    daemon::ignore_sigpipe();
    daemon::ignore_sigxfsz();
    asio::io_context context(1);
    {
        const auto hosts = options.topology.hosts;
        const int while_process = options.while_process;
        const auto scenario = options.scenario;
        const double speed = options.scenario_speed;
        Rack rack(context.get_executor(), std::move(options), folder.path());
        Stopper stopper(context, rack);
        ControlServer server(context.get_executor(), rack,
                             [&stopper](std::function<void()> stopped) { stopper.stop(std::move(stopped)); });
        auto ready = rack.open_switches();
        if (ready) ready = server.listen(folder.control_socket());
        RackEquipment equipment(context.get_executor(), rack);
        FaultService faults(context.get_executor(), equipment);
        add_switch_routes(faults.router(), find_among(rack.switches()));
        if (ready) {
            const auto listening = faults.listen("unix:" + folder.fault_socket());
            if (!listening) ready = std::unexpected(listening.error());
        }
        for (const auto& host : hosts) {
            if (ready) ready = folder.add_host(host.name.value);
        }
        if (!ready) {
            folder.clear(true);
            opened(ready);
            return daemon::kExitFailure;
        }
        opened(ready);
        asio::co_spawn(context, rack.boot(), asio::detached);
        asio::co_spawn(context, daemon::wait_for_shutdown_signal(),
                       [&stopper](const std::exception_ptr&) { stopper.stop([] {}); });
        if (scenario)
            asio::co_spawn(context, play_when_ready(rack, faults, *scenario, speed), asio::detached);
        if (while_process != 0) {
            asio::co_spawn(context, wait_for_process(while_process),
                           [&stopper](const std::exception_ptr&) { stopper.stop([] {}); });
        }
        context.run();
        server.close();
    }
    folder.clear(false);
    log::info("stopped", {});
    return daemon::kExitOk;
}

}  // namespace memtide::emul
