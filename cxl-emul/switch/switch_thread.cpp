#include "cxl-emul/switch/switch_thread.h"

#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

namespace memtide::emul {
namespace asio = boost::asio;

struct SwitchThread::Impl {
    asio::io_context context{1};
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
    std::unique_ptr<Switch> sw;
    std::thread thread;

    ~Impl() {
        if (sw) sw->stop();
        work.reset();
        if (thread.joinable()) thread.join();
    }
};

SwitchThread::SwitchThread(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SwitchThread::~SwitchThread() = default;
SwitchThread::SwitchThread(SwitchThread&&) noexcept = default;
SwitchThread& SwitchThread::operator=(SwitchThread&&) noexcept = default;

Result<SwitchThread> SwitchThread::start(const Topology& topology, const SwitchConfig& config,
                                         std::shared_ptr<HotplugBackend> hotplug, ConnectionLimits limits) {
    auto impl = std::make_unique<Impl>();
    auto opened = Switch::open(impl->context.get_executor(), topology, config, std::move(hotplug), limits);
    if (!opened) return std::unexpected(opened.error());
    impl->sw = *std::move(opened);
    impl->sw->start();
    impl->thread = std::thread([&context = impl->context] { context.run(); });
    return SwitchThread(std::move(impl));
}

const std::vector<std::string>& SwitchThread::addresses() const { return impl_->sw->addresses(); }

Switch& SwitchThread::get() { return *impl_->sw; }

fmapi::Message SwitchThread::execute(fmapi::Message request) {
    return asio::co_spawn(impl_->context, impl_->sw->execute(std::move(request)), asio::use_future).get();
}

std::vector<VppbStatus> SwitchThread::vppbs() {
    return asio::co_spawn(impl_->context, impl_->sw->vppbs(), asio::use_future).get();
}

}  // namespace memtide::emul
