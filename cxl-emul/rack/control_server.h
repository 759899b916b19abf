#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "common/base/error.h"
#include "cxl-emul/rack/rack.h"

namespace memtide::emul {

// The supervisor's unix socket, where `rack` commands ask (frames, see frame.h; one kRequest a connection):
//   status {}                                  {"op"} names the request; the answer is a kReply
//   wait {"seconds"}                           kProgress with the status at every change, kReply when all are
//   ready exec {"host", "argv", "cwd", "env"}        the program's frames up to kExit, or a kReply with why
//   not console {"host"}                           kOutput from, and kInput for, the serial console bind
//   {"host", "vppb", "device"}, unbind {"host", "vppb", "option", "switch"} down {} kReply when the hosts
//   have ended
// Every user who can connect can do all of it, so the socket is its owner's only (mode 0600).
class ControlServer {
  public:
    // `stop` is called when a client wants the rack down; it must run what stops it and then `stopped`.
    ControlServer(boost::asio::any_io_executor executor, Rack& rack,
                  std::function<void(std::function<void()> stopped)> stop);
    ~ControlServer();

    Result<> listen(const std::string& path);
    void close();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace memtide::emul
