#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include "cxl-emul/qemu/qemu_host.h"
#include "cxl-emul/rack/frame_link.h"

namespace memtide::emul {

// The supervisor's side of the connection to the helper in one guest. Survives restarts of the helper and of
// the guest; what was under way then ends with kUnavailable. Single-threaded.
class GuestLink : public GuestHelper, public std::enable_shared_from_this<GuestLink> {
  public:
    struct Callbacks {
        std::function<void()> hello;                            // a helper (re)started
        std::function<void(const boost::json::object&)> event;  // what the helper tells by itself
        std::function<void(std::string_view)> agent_log;
    };
    // Called with the frames of a stream; a kReply or kExit is the last one.
    using StreamHandler = std::function<void(const Frame&)>;

    // Takes over `descriptor`, a socket to the guest's virtio-serial port.
    static std::shared_ptr<GuestLink> open(boost::asio::any_io_executor executor, int descriptor,
                                           Callbacks callbacks);
    ~GuestLink() override;

    // Asks the helper and waits for its reply.
    boost::asio::awaitable<Result<boost::json::object>> ask(boost::json::object request,
                                                            std::chrono::milliseconds timeout);
    // Opens a stream with a request; gives its number.
    std::uint32_t open_stream(const boost::json::object& request, StreamHandler handler);
    // Passes a frame on to a stream (its number is put in).
    void send(std::uint32_t stream, Frame frame);
    // Nobody listens to the stream any more.
    void close_stream(std::uint32_t stream);
    // The guest is gone or restarts: every stream ends with `why`.
    void lost(const Error& why);
    // As lost(), and what comes next is garbage up to the next helper's hello.
    void restarting(const Error& why);
    // The helper answered the first question: others may ask it too.
    void set_available(bool available);
    void close();

    [[nodiscard]] bool available() const override { return available_; }
    boost::asio::awaitable<Result<>> release_slot(unsigned slot) override;
    boost::asio::awaitable<Result<>> check_slot_unused(unsigned slot) override;

  private:
    GuestLink(boost::asio::any_io_executor executor, std::shared_ptr<FrameLink> link, Callbacks callbacks);
    boost::asio::awaitable<void> run();
    void take(const Frame& frame);

    boost::asio::any_io_executor executor_;
    std::shared_ptr<FrameLink> link_;
    Callbacks callbacks_;
    bool available_ = false;
    std::uint32_t next_stream_ = 1;
    std::map<std::uint32_t, StreamHandler> streams_;
};

}  // namespace memtide::emul
