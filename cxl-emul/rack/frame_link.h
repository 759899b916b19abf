#pragma once

#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "cxl-emul/rack/frame.h"

namespace memtide::emul {

// A descriptor that carries frames both ways: a socket or a virtio-serial port. Used from one single-threaded
// executor. Whoever holds the link gets no more frames after close().
class FrameLink : public std::enable_shared_from_this<FrameLink> {
  public:
    // What to do with bytes that are no frame: give up (close), or skip to the peer's next hello.
    enum class OnGarbage { kClose, kResynchronise };

    // Takes over `descriptor`.
    static std::shared_ptr<FrameLink> open(boost::asio::any_io_executor executor, int descriptor,
                                           OnGarbage on_garbage);
    ~FrameLink();

    // Gives the next frame; an error when the link is closed (kUnavailable) or the peer is no peer
    // (kProtocol).
    boost::asio::awaitable<Result<Frame>> receive();
    // Queues a frame; lost when the link is closed.
    void send(const Frame& frame);
    // Queues bytes as they are, for the hello marker.
    void send_raw(std::string bytes);
    // Waits until all that was queued is written or the link is closed.
    boost::asio::awaitable<void> flush();
    // Forgets a partly received frame and skips to the next hello: the peer restarted.
    void resynchronise();
    void close();
    [[nodiscard]] bool is_open() const;

  private:
    struct State;
    explicit FrameLink(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace memtide::emul
