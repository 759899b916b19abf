#include "cxl-emul/rack/control_server.h"

#include <chrono>
#include <list>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include "common/base/no_throw.h"
#include "common/log/log.h"
#include "cxl-emul/rack/messages.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::steady_clock;

namespace {
constexpr auto kDefaultWait = std::chrono::seconds(180);

fmapi::UnbindOption unbind_option(const std::string& name) {
    if (name == "surprise") return fmapi::UnbindOption::kSurpriseHotRemove;
    if (name == "managed") return fmapi::UnbindOption::kManagedHotRemove;
    return fmapi::UnbindOption::kWaitForLinkDown;
}
}  // namespace

struct ControlServer::State : std::enable_shared_from_this<State> {
    State(asio::any_io_executor ex, Rack& the_rack, std::function<void(std::function<void()>)> stop_rack)
        : executor(std::move(ex)),
          rack(the_rack),
          stop(std::move(stop_rack)),
          acceptor(executor),
          change(executor) {
        change.expires_at(asio::steady_timer::time_point::max());
    }

    asio::awaitable<void> accept_all();
    asio::awaitable<void> serve(std::shared_ptr<FrameLink> client);
    asio::awaitable<void> let_client_close(std::shared_ptr<FrameLink> client);
    asio::awaitable<void> serve_exec(std::shared_ptr<FrameLink> client, std::uint32_t stream,
                                     json::object request);
    asio::awaitable<void> serve_console(std::shared_ptr<FrameLink> client, std::uint32_t stream,
                                        json::object request);
    asio::awaitable<Result<json::object>> wait(std::shared_ptr<FrameLink> client, std::uint32_t stream,
                                               std::chrono::seconds time);
    asio::awaitable<Result<json::object>> answer(std::shared_ptr<FrameLink> client, std::uint32_t stream,
                                                 json::object request);

    asio::any_io_executor executor;
    Rack& rack;
    std::function<void(std::function<void()>)> stop;
    asio::local::stream_protocol::acceptor acceptor;
    asio::steady_timer change;  // never expires; cancelled at every change of the rack
    std::list<std::shared_ptr<FrameLink>> clients;
};

ControlServer::ControlServer(asio::any_io_executor executor, Rack& rack,
                             std::function<void(std::function<void()> stopped)> stop)
    : state_(std::make_shared<State>(std::move(executor), rack, std::move(stop))) {
    rack.on_change([weak = state_->weak_from_this()] {
        if (auto state = weak.lock()) state->change.cancel();
    });
}

ControlServer::~ControlServer() { close(); }

Result<> ControlServer::listen(const std::string& path) {
    boost::system::error_code error;
    auto& acceptor = state_->acceptor;
    acceptor.open({}, error);
    const auto mask = ::umask(0177);
    if (!error) acceptor.bind(asio::local::stream_protocol::endpoint(path), error);
    ::umask(mask);
    if (!error) acceptor.listen(64, error);
    if (error) return fail_errno("listen on", path, error.value());
    asio::co_spawn(state_->executor, state_->accept_all(), asio::detached);
    return {};
}

void ControlServer::close() {
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
    for (const auto& client : state_->clients) client->close();
    state_->change.cancel();
}

asio::awaitable<void> ControlServer::State::accept_all() {
    auto self = shared_from_this();
    for (;;) {
        auto [error, socket] = co_await acceptor.async_accept(kNoThrow);
        if (error == asio::error::operation_aborted || !acceptor.is_open()) co_return;
        if (error) {
            log::warning("control socket", {{"error", error.message()}});
            asio::steady_timer moment(executor, std::chrono::milliseconds(100));
            co_await moment.async_wait(kNoThrow);
            continue;
        }
        auto client = FrameLink::open(executor, socket.release(), FrameLink::OnGarbage::kClose);
        asio::co_spawn(executor, serve(std::move(client)), asio::detached);
    }
}

asio::awaitable<void> ControlServer::State::serve(std::shared_ptr<FrameLink> client) {
    auto self = shared_from_this();
    const auto place = clients.insert(clients.end(), client);
    auto first = co_await client->receive();
    if (first && first->type == FrameType::kRequest) {
        const auto stream = first->stream;
        auto message = parse_message(*first);
        if (!message) {
            client->send(error_reply(stream, message.error()));
        } else if (const auto op = text_of(*message, "op"); op == "exec") {
            co_await serve_exec(client, stream, std::move(*message));
        } else if (op == "console") {
            co_await serve_console(client, stream, std::move(*message));
        } else {
            auto answered = co_await answer(client, stream, std::move(*message));
            client->send(answered ? reply(stream, *answered) : error_reply(stream, answered.error()));
        }
        co_await client->flush();
    }
    client->close();
    clients.erase(place);
}

asio::awaitable<Result<json::object>> ControlServer::State::answer(std::shared_ptr<FrameLink> client,
                                                                   std::uint32_t stream,
                                                                   json::object request) {
    const auto op = text_of(request, "op");
    if (op == "status") co_return co_await rack.status();
    if (op == "wait") {
        const auto seconds = number_of(request, "seconds");
        const std::chrono::seconds limit(seconds > 0 ? seconds : std::chrono::seconds(kDefaultWait).count());
        co_return co_await wait(client, stream, limit);
    }
    const auto vppb = static_cast<unsigned>(number_of(request, "vppb"));
    if (op == "bind")
        co_return co_await rack.bind(text_of(request, "host"), vppb, text_of(request, "device"));
    if (op == "unbind") {
        Rack::Waiting waiting = [client, stream](const std::string& what) {
            client->send(progress(stream, {{"waiting", what}}));
        };
        co_return co_await rack.unbind(text_of(request, "host"), text_of(request, "switch"), vppb,
                                       unbind_option(text_of(request, "option")), std::move(waiting));
    }
    if (op == "down") {
        auto stopped = std::make_shared<bool>(false);
        auto wake = std::make_shared<asio::steady_timer>(executor, asio::steady_timer::time_point::max());
        stop([stopped, wake] {
            *stopped = true;
            wake->cancel();
        });
        while (!*stopped) co_await wake->async_wait(kNoThrow);
        co_return json::object();
    }
    co_return fail(ErrorCode::kInvalidArgument, "the supervisor does not know \"" + op + "\"");
}

asio::awaitable<Result<json::object>> ControlServer::State::wait(std::shared_ptr<FrameLink> client,
                                                                 std::uint32_t stream,
                                                                 std::chrono::seconds time) {
    const auto deadline = steady_clock::now() + time;
    while (client->is_open()) {
        auto now = co_await rack.status();
        if (rack.ready()) co_return now;
        if (auto why = rack.failure(); !why.empty()) co_return fail(ErrorCode::kUnavailable, why);
        if (steady_clock::now() >= deadline) {
            co_return fail(
                ErrorCode::kTimeout,
                fmt::format("not every host is ready after {} s; see their serial.log", time.count()));
        }
        client->send(progress(stream, now));
        // A change, or the next second for whoever shows the time.
        asio::steady_timer tick(executor, std::chrono::seconds(1));
        tick.async_wait([this, self = shared_from_this()](const boost::system::error_code& error) {
            if (!error) change.cancel();
        });
        co_await change.async_wait(kNoThrow);
    }
    co_return fail(ErrorCode::kCancelled, "the client is gone");
}

// For a refusal: what the client still sends is taken, since closing on it would cost the client the answer.
asio::awaitable<void> ControlServer::State::let_client_close(std::shared_ptr<FrameLink> client) {
    co_await client->flush();
    for (;;) {
        const auto ignored = co_await client->receive();
        if (!ignored) co_return;
    }
}

asio::awaitable<void> ControlServer::State::serve_exec(std::shared_ptr<FrameLink> client,
                                                       std::uint32_t stream, json::object request) {
    auto host = rack.host(text_of(request, "host"));
    auto guest = host ? (*host)->guest() : std::unexpected(host.error());
    if (!guest) {
        client->send(error_reply(stream, guest.error()));
        co_await let_client_close(client);
        co_return;
    }
    auto link = *guest;
    auto ended = std::make_shared<bool>(false);
    const auto number = link->open_stream(request, [client, stream, ended](Frame frame) {
        frame.stream = stream;
        *ended = frame.type == FrameType::kExit || frame.type == FrameType::kReply;
        client->send(frame);
    });
    for (;;) {
        auto frame = co_await client->receive();
        if (!frame) break;
        link->send(number, std::move(*frame));
    }
    if (!*ended) link->close_stream(number);
}

asio::awaitable<void> ControlServer::State::serve_console(std::shared_ptr<FrameLink> client,
                                                          std::uint32_t stream, json::object request) {
    auto host = rack.host(text_of(request, "host"));
    if (!host) {
        client->send(error_reply(stream, host.error()));
        co_await let_client_close(client);
        co_return;
    }
    auto keep = *host;
    const auto number = keep->listen([client, stream](std::string_view bytes) {
        client->send({FrameType::kOutput, stream, std::string(bytes)});
    });
    for (;;) {
        auto frame = co_await client->receive();
        if (!frame) break;
        if (frame->type == FrameType::kInput) keep->qemu().type(std::move(frame->payload));
    }
    keep->stop_listening(number);
}

}  // namespace memtide::emul
