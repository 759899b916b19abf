#include "common/http/hub.h"

#include <algorithm>

#include <poll.h>

#include "common/http/connection.h"

namespace memtide::http {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Hub::Hub(boost::asio::any_io_executor on, const Router& routes, ServerLimits bounds, ServerSecurity secure)
    : executor(std::move(on)), router(routes), limits(bounds), security(std::move(secure)), timer_(executor) {
    const auto shortest = std::min({limits.request_timeout, limits.idle_timeout, limits.write_timeout});
    tick_ = std::clamp(shortest / 8, milliseconds(5), milliseconds(250));
}

void Hub::add(Connection& connection) {
    connections_.insert(&connection);
    if (connection.surplus()) ++surplus_;
    watch();
}

void Hub::remove(Connection& connection) {
    connections_.erase(&connection);
    if (connection.surplus()) --surplus_;
}

std::vector<std::shared_ptr<Connection>> Hub::snapshot() const {
    std::vector<std::shared_ptr<Connection>> result;
    result.reserve(connections_.size());
    for (Connection* connection : connections_)
        if (auto alive = connection->weak_from_this().lock()) result.push_back(std::move(alive));
    return result;
}

void Hub::watch() {
    if (watching_) return;
    watching_ = true;
    timer_.expires_after(tick_);
    timer_.async_wait([self = weak_from_this()](const boost::system::error_code&) {
        const auto hub = self.lock();
        if (!hub) return;
        hub->watching_ = false;
        if (hub->connections_.empty()) return;
        hub->sweep();
        hub->watch();
    });
}

void Hub::sweep() {
    const auto now = Clock::now();
    const auto all = snapshot();
    std::vector<pollfd> descriptors;
    std::vector<Connection*> watched;
    for (const auto& connection : all) {
        connection->enforce_deadline(now);
        if (!connection->wants_watching(now)) continue;
        descriptors.push_back({.fd = connection->descriptor(), .events = POLLRDHUP, .revents = 0});
        watched.push_back(connection.get());
    }
    if (descriptors.empty() || ::poll(descriptors.data(), descriptors.size(), 0) <= 0) return;
    for (std::size_t i = 0; i < descriptors.size(); ++i)
        if (descriptors[i].revents != 0) watched[i]->client_is_gone();
}

bool Hub::close_idlest() {
    constexpr milliseconds kFresh{1000};  // its request may be on the way
    Connection* idlest = nullptr;
    for (Connection* connection : connections_)
        if (connection->idle() && (idlest == nullptr || connection->since() < idlest->since()))
            idlest = connection;
    if (idlest == nullptr || Clock::now() - idlest->since() < kFresh) return false;
    idlest->close();
    return true;
}

void Hub::begin_stopping() {
    stopping = true;
    for (const auto& connection : snapshot()) connection->finish_soon();
}

void Hub::abandon() {
    for (const auto& connection : snapshot()) connection->abandon();
}

}  // namespace memtide::http
