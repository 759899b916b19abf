#pragma once

#include <string_view>

#include "common/base/error.h"

namespace memtide::agent {

// The kernel's device events (netlink, NETLINK_KOBJECT_UEVENT). Only says that something about CXL, DAX or
// memory happened; what, one sees by looking. Not thread safe.
class Uevents {
  public:
    // kPermission, kIo; also without network namespaces' consent in some containers: then one polls.
    static Result<Uevents> open();
    ~Uevents();
    Uevents(Uevents&& other) noexcept;
    Uevents& operator=(Uevents&& other) noexcept;

    [[nodiscard]] int descriptor() const { return socket_; }  // readable when there are events
    // Takes all waiting events; true when one of them was about this agent's subsystems, or some were lost.
    bool drain();

  private:
    explicit Uevents(int socket) : socket_(socket) {}
    int socket_ = -1;
};

// Of one event as the kernel sends it: "add@/devices/...\0ACTION=add\0SUBSYSTEM=cxl\0...".
bool uevent_concerns_memory(std::string_view event);

}  // namespace memtide::agent
