#include "cxl-emul/rack/guest_link.h"

#include <optional>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "cxl-emul/rack/messages.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {
constexpr auto kSlotTimeout = std::chrono::seconds(30);
}

GuestLink::GuestLink(asio::any_io_executor executor, std::shared_ptr<FrameLink> link, Callbacks callbacks)
    : executor_(std::move(executor)), link_(std::move(link)), callbacks_(std::move(callbacks)) {}

GuestLink::~GuestLink() = default;

std::shared_ptr<GuestLink> GuestLink::open(asio::any_io_executor executor, int descriptor,
                                           Callbacks callbacks) {
    auto frames = FrameLink::open(executor, descriptor, FrameLink::OnGarbage::kResynchronise);
    std::shared_ptr<GuestLink> link(new GuestLink(executor, std::move(frames), std::move(callbacks)));
    asio::co_spawn(executor, link->run(), asio::detached);
    return link;
}

asio::awaitable<void> GuestLink::run() {
    auto self = shared_from_this();
    for (;;) {
        auto frame = co_await link_->receive();
        if (!frame) break;
        take(*frame);
    }
    lost({ErrorCode::kUnavailable, "the guest is gone"});
}

void GuestLink::take(const Frame& frame) {
    if (frame.type == FrameType::kHello) {
        lost({ErrorCode::kUnavailable, "the guest's helper restarted"});
        link_->send_raw(hello_marker());
        if (callbacks_.hello) callbacks_.hello();
    } else if (frame.type == FrameType::kEvent) {
        auto message = parse_message(frame);
        if (message && callbacks_.event) callbacks_.event(*message);
    } else if (frame.type == FrameType::kAgentLog) {
        if (callbacks_.agent_log) callbacks_.agent_log(frame.payload);
    } else if (const auto stream = streams_.find(frame.stream); stream != streams_.end()) {
        const bool last = frame.type == FrameType::kReply || frame.type == FrameType::kExit;
        auto handler = stream->second;
        if (last) streams_.erase(stream);
        handler(frame);
    }
}

std::uint32_t GuestLink::open_stream(const json::object& message, StreamHandler handler) {
    const auto stream = next_stream_++;
    streams_[stream] = std::move(handler);
    link_->send(request(stream, message));
    return stream;
}

void GuestLink::send(std::uint32_t stream, Frame frame) {
    if (!streams_.contains(stream)) return;
    frame.stream = stream;
    link_->send(frame);
}

void GuestLink::close_stream(std::uint32_t stream) {
    if (streams_.erase(stream) > 0) link_->send(reply(stream, {}));
}

void GuestLink::lost(const Error& why) {
    available_ = false;
    for (auto& [stream, handler] : std::exchange(streams_, {})) handler(error_reply(stream, why));
}

void GuestLink::restarting(const Error& why) {
    link_->resynchronise();
    lost(why);
}

void GuestLink::set_available(bool available) { available_ = available; }

void GuestLink::close() {
    link_->close();
    lost({ErrorCode::kUnavailable, "the guest is gone"});
    callbacks_ = {};
}

asio::awaitable<Result<json::object>> GuestLink::ask(json::object message,
                                                     std::chrono::milliseconds timeout) {
    auto self = shared_from_this();
    auto timer = std::make_shared<asio::steady_timer>(executor_, timeout);
    auto answer = std::make_shared<std::optional<Frame>>();
    const auto stream = open_stream(message, [timer, answer](const Frame& frame) {
        *answer = frame;
        timer->cancel();
    });
    if (!*answer) co_await timer->async_wait(asio::as_tuple(asio::use_awaitable));
    if (!*answer) {
        streams_.erase(stream);
        co_return fail(ErrorCode::kTimeout, "the guest's helper did not answer");
    }
    co_return read_reply(**answer);
}

asio::awaitable<Result<>> GuestLink::release_slot(unsigned slot) {
    json::object message;
    message["op"] = "release-slot";
    message["slot"] = slot;
    auto done = co_await ask(std::move(message), kSlotTimeout);
    if (!done) co_return std::unexpected(done.error());
    co_return Result<>{};
}

asio::awaitable<Result<>> GuestLink::check_slot_unused(unsigned slot) {
    json::object message;
    message["op"] = "check-slot";
    message["slot"] = slot;
    auto done = co_await ask(std::move(message), kSlotTimeout);
    if (!done) co_return std::unexpected(done.error());
    co_return Result<>{};
}

}  // namespace memtide::emul
