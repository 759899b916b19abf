#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/transport.h"

namespace memtide::fm {

// An endpoint of the kernel's MCTP stack (AF_MCTP, Linux 5.15 and up), which cuts messages into packets and
// puts them together, and chooses the MCTP tags. Written to the kernel's documentation; no machine with MCTP
// was at hand to try it. open() says so (kUnavailable) where the kernel has no AF_MCTP.
std::unique_ptr<Transport> make_mctp_transport(const boost::asio::any_io_executor& executor,
                                               MctpEndpoint endpoint);

}  // namespace memtide::fm
