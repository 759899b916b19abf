#pragma once

#include <functional>
#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "common/base/error.h"
#include "cxl-emul/rack/frame.h"

namespace memtide::emul {

// A command's connection to the supervisor of a rack. Blocking; one request a connection.
class ControlClient {
  public:
    // kUnavailable with "no rack runs in …" when there is none.
    static Result<ControlClient> connect(const std::string& run_folder);
    ControlClient(ControlClient&& other) noexcept;
    ControlClient& operator=(ControlClient&&) = delete;
    ~ControlClient();

    // Sends a request, and gives its reply; what is told on the way goes to `progress`.
    using Progress = std::function<void(const boost::json::object&)>;
    Result<boost::json::object> ask(const boost::json::object& request, const Progress& progress = {});
    Result<> send(const Frame& frame);
    // The next frame; blocks. kUnavailable when the supervisor ended.
    Result<Frame> receive();
    // A frame that is there already; nothing when it would have to be waited for.
    Result<std::optional<Frame>> receive_if_there();
    [[nodiscard]] int descriptor() const { return fd_; }

  private:
    explicit ControlClient(int fd) : fd_(fd) {}
    int fd_;
    FrameParser parser_;
};

}  // namespace memtide::emul
