#include "fabric-manager/fmapi/transport.h"

#include <utility>

#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/captured_transport.h"
#include "fabric-manager/fmapi/device_transport.h"
#include "fabric-manager/fmapi/mctp_transport.h"
#include "fabric-manager/fmapi/stream_transport.h"

namespace memtide::fm {

std::unique_ptr<Transport> make_transport(const boost::asio::any_io_executor& executor,
                                          const SwitchAddress& address, fmapi::SwitchCapture capture) {
    if (address.device.empty() && !address.mctp)
        return std::make_unique<DialingTransport>(executor, address, std::move(capture));
    auto transport = address.mctp ? make_mctp_transport(executor, *address.mctp)
                                  : make_device_transport(executor, address.device);
    if (!capture.is_on()) return transport;
    return std::make_unique<CapturedTransport>(std::move(transport), std::move(capture));
}

}  // namespace memtide::fm
