#include "common/http/server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/no_throw.h"
#include "common/http/connection.h"
#include "common/http/hub.h"
#include "common/http/listener.h"
#include "common/log/log.h"

namespace memtide::http {

namespace asio = boost::asio;
using std::chrono::milliseconds;

namespace {

void admit(const std::shared_ptr<Hub>& hub, const Listener& listener, Connection::Socket socket,
           bool must_refuse = false) {
    constexpr std::size_t kMostSurplus = 64;  // beyond, they are closed without a word
    const bool full =
        must_refuse || (hub->connection_count() >= hub->limits.connections && !hub->close_idlest());
    if (full && hub->surplus_count() >= kMostSurplus) return;
    auto connection = std::make_shared<Connection>(hub, std::move(socket), full);
    if (hub->security.tls && listener.port() != 0) connection->secure(hub->security.tls);
    Connection::start(connection);
}

// A descriptor that is held back, so that there is one for telling a client that there are no more.
class SpareDescriptor {
  public:
    SpareDescriptor() { take_back(); }
    ~SpareDescriptor() { (void)give_way(); }
    SpareDescriptor(const SpareDescriptor&) = delete;
    SpareDescriptor& operator=(const SpareDescriptor&) = delete;
    // False when it has been given away already.
    bool give_way() { return fd_ >= 0 && ::close(std::exchange(fd_, -1)) == 0; }
    void take_back() {
        if (fd_ < 0) fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    }

  private:
    int fd_ = -1;
};

asio::awaitable<void> accept_all(std::shared_ptr<Hub> hub, std::shared_ptr<Listener> listener) {
    bool complained = false;
    SpareDescriptor spare;
    while (!hub->stopping) {
        Connection::Socket socket(hub->executor);
        const auto error = co_await listener->accept(socket);
        if (!error) {
            complained = false;
            admit(hub, *listener, std::move(socket));
            continue;
        }
        if (error == asio::error::operation_aborted || hub->stopping) co_return;
        if (error == asio::error::connection_aborted) continue;
        // Out of descriptors or memory: someone idle makes room, the one who waits is told, and time may
        // help.
        if (!std::exchange(complained, true))
            log::warning("cannot accept connections",
                         {{"error", error.message()}, {"connections", hub->connection_count()}});
        if (!hub->close_idlest() && spare.give_way()) {
            Connection::Socket refused(hub->executor);
            if (!co_await listener->accept(refused)) admit(hub, *listener, std::move(refused), true);
        }
        asio::steady_timer pause(hub->executor, milliseconds(50));
        co_await pause.async_wait(kNoThrow);
        spare.take_back();
    }
}

}  // namespace

struct Server::Impl {
    std::shared_ptr<Hub> hub;
    std::vector<std::shared_ptr<Listener>> listeners;
};

Server::Server(asio::any_io_executor executor, const Router& router, ServerLimits limits,
               ServerSecurity security)
    : impl_(std::make_shared<Impl>(
          Impl{std::make_shared<Hub>(std::move(executor), router, limits, std::move(security)), {}})) {}

Server::~Server() {
    impl_->hub->stopping = true;
    for (const auto& listener : impl_->listeners) listener->close();
    impl_->hub->abandon();
    impl_->hub->stop_watching();
}

Result<> Server::listen(const std::string& address) {
    auto listener = Listener::open(impl_->hub->executor, address);
    if (!listener) return std::unexpected(std::move(listener.error()));
    impl_->listeners.push_back(*listener);
    asio::co_spawn(impl_->hub->executor, accept_all(impl_->hub, *listener), asio::detached);
    return {};
}

std::uint16_t Server::port() const {
    for (const auto& listener : impl_->listeners)
        if (listener->port() != 0) return listener->port();
    return 0;
}

asio::awaitable<void> Server::stop(milliseconds grace) {
    const std::shared_ptr<Impl> impl = impl_;
    for (const auto& listener : impl->listeners) listener->close();
    impl->hub->begin_stopping();
    using Clock = std::chrono::steady_clock;
    // After the grace, a moment more for cancelled handlers to unwind.
    const auto end = Clock::now() + grace;
    const auto last = end + milliseconds(500);
    bool abandoned = false;
    asio::steady_timer pause(impl->hub->executor);
    while (impl->hub->connection_count() + impl->hub->surplus_count() > 0 && Clock::now() < last) {
        if (Clock::now() >= end && !std::exchange(abandoned, true)) impl->hub->abandon();
        pause.expires_after(milliseconds(5));
        co_await pause.async_wait(kNoThrow);
    }
    impl->hub->stop_watching();
}

std::size_t Server::connection_count() const { return impl_->hub->connection_count(); }

}  // namespace memtide::http
