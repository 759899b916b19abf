#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "cxl-emul/switch/endpoint.h"
#include "cxl-emul/switch/listener.h"

namespace memtide::emul {

// Connects to a manager that listens for this switch; kUnavailable when none does.
boost::asio::awaitable<Result<StreamSocket>> dial(boost::asio::any_io_executor executor, Endpoint endpoint);

}  // namespace memtide::emul
