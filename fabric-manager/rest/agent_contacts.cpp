#include "fabric-manager/rest/agent_contacts.h"

#include <algorithm>
#include <utility>

namespace memtide::fm {

AgentContacts::Poll::Poll(AgentContacts& contacts, HostId host)
    : contacts_(contacts), host_(std::move(host)) {
    contacts_.touch(host_);
    ++contacts_.contacts_[host_].open_polls;
}

AgentContacts::Poll::~Poll() {
    contacts_.touch(host_);
    --contacts_.contacts_[host_].open_polls;
}

void AgentContacts::touch(const HostId& host, Clock::time_point now) {
    Contact& contact = contacts_[host];
    contact.last = now;
    contact.last_time = std::chrono::system_clock::now();
}

std::optional<Time> AgentContacts::away_since(const HostId& host, Clock::time_point now) const {
    const auto found = contacts_.find(host);
    if (found == contacts_.end() || connected(host, now)) return std::nullopt;
    return found->second.last_time;
}

bool AgentContacts::connected(const HostId& host, Clock::time_point now) const {
    const auto found = contacts_.find(host);
    if (found == contacts_.end()) return false;
    return found->second.open_polls > 0 || now - found->second.last <= kGrace;
}

std::size_t AgentContacts::connected_count(Clock::time_point now) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(contacts_, [&](const auto& one) { return connected(one.first, now); }));
}

}  // namespace memtide::fm
