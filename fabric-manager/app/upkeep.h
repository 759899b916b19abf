#pragma once

#include <memory>

#include <boost/asio/awaitable.hpp>

#include "common/tls/server_context.h"
#include "fabric-manager/security/gate.h"

namespace memtide::fm {

// Until it is cancelled: once a second, and at SIGHUP at once, takes in what has changed on the disk
// (certificates, tokens) and writes what the audit log owes. SIGHUP also opens the audit log again. `tls` may
// be null.
boost::asio::awaitable<void> keep_up(Gate& gate, std::shared_ptr<tls::ServerContext> tls);

}  // namespace memtide::fm
