#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "fabric-manager/fmapi/transport.h"

namespace memtide::fm {

// ioctl(2): 0 or a negative errno.
using DeviceControl = std::function<int(int fd, unsigned long request, void* argument)>;
DeviceControl system_device_control();

// The mailbox of a switch or a memory device that the kernel's CXL driver has as a character device
// (/dev/cxl/switchN, /dev/cxl/memN). Commands are ioctls that block until the device has answered, so they
// run on a thread of the transport's own, one after the other; the destructor waits for the one under way,
// which the driver ends after its own timeout. Commands that the driver has a number for go by that; all
// others need a kernel with CONFIG_CXL_MEM_RAW_COMMANDS, and are refused with kPermission where it is off.
std::unique_ptr<Transport> make_device_transport(const boost::asio::any_io_executor& executor,
                                                 std::string path,
                                                 DeviceControl control = system_device_control());

}  // namespace memtide::fm
