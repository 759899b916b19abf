#pragma once

#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "cxl-emul/qemu/command_line.h"

namespace memtide::emul {

struct AcceleratorChoice {
    Accelerator accelerator = Accelerator::kTcg;
    std::string reason;  // for people: "KVM boots the guest kernel", "/dev/kvm: Permission denied"
};

// Finds out whether KVM really runs the guest kernel, by booting it to its initramfs (at most 15 s): a
// /dev/kvm that can be opened may still fail in early boot, e.g. in a nested virtual machine. The answer is
// kept in `cache_file` for this boot of the machine, this QEMU and this kernel; an unwritable cache only
// costs time. `work_folder` takes the probe's log.
boost::asio::awaitable<AcceleratorChoice> choose_accelerator(boost::asio::any_io_executor executor,
                                                             std::string kernel, std::string initramfs,
                                                             std::string cache_file, std::string work_folder);

}  // namespace memtide::emul
