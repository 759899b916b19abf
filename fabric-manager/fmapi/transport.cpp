#include "fabric-manager/fmapi/transport.h"

#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/device_transport.h"
#include "fabric-manager/fmapi/mctp_transport.h"
#include "fabric-manager/fmapi/stream_transport.h"

namespace memtide::fm {

std::unique_ptr<Transport> make_transport(const boost::asio::any_io_executor& executor,
                                          const SwitchAddress& address) {
    if (!address.device.empty()) return make_device_transport(executor, address.device);
    if (address.mctp) return make_mctp_transport(executor, *address.mctp);
    return std::make_unique<DialingTransport>(executor, address);
}

}  // namespace memtide::fm
