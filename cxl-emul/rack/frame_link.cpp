#include "cxl-emul/rack/frame_link.h"

#include <array>
#include <chrono>
#include <deque>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "common/base/no_throw.h"

namespace memtide::emul {
namespace asio = boost::asio;

namespace {}

struct FrameLink::State : std::enable_shared_from_this<State> {
    State(const asio::any_io_executor& executor, int descriptor, OnGarbage garbage)
        : stream(executor, descriptor),
          drained(executor),
          parser(garbage == OnGarbage::kResynchronise ? FrameParser::Start::kAfterHello
                                                      : FrameParser::Start::kAtOnce),
          on_garbage(garbage) {
        drained.expires_at(asio::steady_timer::time_point::max());
    }

    void close() {
        closed = true;
        boost::system::error_code ignored;
        if (stream.is_open()) stream.close(ignored);
        drained.cancel();
    }

    asio::awaitable<void> write_loop() {
        auto self = shared_from_this();
        while (!queue.empty() && !closed) {
            // One write for all that waits: each write is an exit to the emulator on a virtio port.
            std::string batch;
            while (!queue.empty() && batch.size() < kWindow) {
                batch += queue.front();
                queue.pop_front();
            }
            auto [error, size] = co_await asio::async_write(stream, asio::buffer(batch), kNoThrow);
            if (error) close();
        }
        writing = false;
        drained.cancel();
    }

    asio::posix::stream_descriptor stream;
    asio::steady_timer drained;  // never expires; cancelled when the queue is written
    FrameParser parser;
    OnGarbage on_garbage;
    std::deque<std::string> queue;
    std::array<char, 64 << 10> chunk{};
    bool writing = false;
    bool closed = false;
};

FrameLink::FrameLink(std::shared_ptr<State> state) : state_(std::move(state)) {}
FrameLink::~FrameLink() { close(); }

std::shared_ptr<FrameLink> FrameLink::open(asio::any_io_executor executor, int descriptor,
                                           OnGarbage on_garbage) {
    return std::shared_ptr<FrameLink>(
        new FrameLink(std::make_shared<State>(executor, descriptor, on_garbage)));
}

asio::awaitable<Result<Frame>> FrameLink::receive() {
    auto state = state_;
    for (;;) {
        if (state->closed) co_return fail(ErrorCode::kUnavailable, "the connection is closed");
        auto frame = state->parser.next();
        if (!frame && state->on_garbage == OnGarbage::kClose) {
            state->close();
            co_return std::unexpected(frame.error());
        }
        if (!frame) {
            state->parser.reset();
        } else if (*frame) {
            co_return std::move(**frame);
        }
        auto [error, size] = co_await state->stream.async_read_some(asio::buffer(state->chunk), kNoThrow);
        if (error) {
            state->close();
            co_return fail(ErrorCode::kUnavailable, "the connection is closed: " + error.message());
        }
        state->parser.feed({state->chunk.data(), size});
    }
}

void FrameLink::send(const Frame& frame) { send_raw(encode_frame(frame)); }

void FrameLink::send_raw(std::string bytes) {
    if (state_->closed) return;
    state_->queue.push_back(std::move(bytes));
    if (state_->writing) return;
    state_->writing = true;
    asio::co_spawn(state_->stream.get_executor(), state_->write_loop(), asio::detached);
}

asio::awaitable<void> FrameLink::flush() {
    auto state = state_;
    while (state->writing && !state->closed) co_await state->drained.async_wait(kNoThrow);
}

void FrameLink::resynchronise() { state_->parser.reset(); }
void FrameLink::close() { state_->close(); }
bool FrameLink::is_open() const { return !state_->closed; }

}  // namespace memtide::emul
