#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "cxl-emul/rack/frame.h"

namespace memtide::emul {

struct ProgramRequest {
    std::vector<std::string> argv;
    std::string working_directory;  // "/" instead when the guest does not have it
    std::map<std::string, std::string> environment;
};

// One program that the helper runs for a stream: its input comes as frames, its output and exit code leave as
// frames. Single-threaded.
class GuestProgram : public std::enable_shared_from_this<GuestProgram> {
  public:
    using Send = std::function<void(const Frame&)>;

    // Starts it. A program that cannot be started says so on its error output and ends with 127 (not found)
    // or 126, as in a shell. `on_end` is called after kExit was sent.
    static std::shared_ptr<GuestProgram> start(boost::asio::any_io_executor executor, std::uint32_t stream,
                                               ProgramRequest request, Send send,
                                               std::function<void()> on_end);
    ~GuestProgram();

    // kInput, kInputEnd, kSignal, kCredit of its stream.
    void take(const Frame& frame);
    // Nobody listens any more: hang-up to its process group, and a kill for what ignores that.
    void abandon();

  private:
    struct State;
    explicit GuestProgram(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace memtide::emul
