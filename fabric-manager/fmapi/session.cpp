#include "fabric-manager/fmapi/session.h"

#include <chrono>
#include <utility>

#include <boost/system/system_error.hpp>
#include <fmt/format.h>

#include "common/log/log.h"

namespace memtide::fm {
namespace asio = boost::asio;
using std::chrono::steady_clock;

namespace {

// A switch may not answer one command it does not know, but one that answers none is gone: its host may have
// vanished without closing the connection.
constexpr unsigned kTimeoutsUntilReconnect = 2;

// Between two waits for what the switch says unasked. While nothing is asked the wait goes on; while commands
// follow each other every answer would end it, and a system call for each of them is dear.
constexpr std::chrono::milliseconds kWatchPause{10};

std::unexpected<Error> cancelled() { return fail(ErrorCode::kCancelled, "cancelled"); }

}  // namespace

Session::Session(asio::any_io_executor executor, SwitchAddress address, ClientOptions options)
    : address_(std::move(address)),
      options_(std::move(options)),
      connection_(executor),
      turns_(executor),
      watch_timer_(executor) {}

asio::awaitable<Result<fmapi::Message>> Session::exchange(std::shared_ptr<Session> self, fmapi::Opcode opcode,
                                                          fmapi::Payload payload,
                                                          std::optional<std::uint64_t> connection) {
    const std::uint64_t closings = self->closings_;
    Result<fmapi::Message> answer = cancelled();
    try {
        const TurnQueue::Turn turn = co_await self->turns_.take();
        if (turn && self->closings_ == closings) {
            if (connection && (*connection != self->connections_ || !self->connection_.still_open())) {
                answer = fail(ErrorCode::kUnavailable, "not sent: the switch was connected to anew");
            } else {
                const fmapi::Message request =
                    fmapi::make_request(opcode, ++self->last_tag_, std::move(payload));
                const auto began = steady_clock::now();
                self->exchanging_ = true;
                answer = co_await self->exchange_in_turn(request);
                self->exchanging_ = false;
                self->connection_.clear_deadline();
                self->take_what_came();
                self->watch();
                if (self->options_.observer)
                    self->options_.observer(opcode, steady_clock::now() - began, answer.has_value());
            }
        }
    } catch (const boost::system::system_error&) {
        // Asio throws out of a co_await once the coroutine is cancelled, unless told otherwise by its owner.
        self->exchanging_ = false;
        self->connection_.clear_deadline();
        self->watch();
        answer = cancelled();
    }
    if (!answer && self->closings_ != closings) answer = cancelled();
    if (!answer)
        answer = std::unexpected(std::move(answer.error()).with_context("switch at " + self->address()));
    co_return answer;
}

void Session::close() {
    ++closings_;
    watch_timer_.cancel();
    connection_.close();
}

asio::awaitable<Result<>> Session::connect() {
    if (connection_.still_open()) co_return Result<>{};
    timeouts_in_a_row_ = 0;
    connection_.set_deadline(steady_clock::now() + options_.connect_timeout);
    auto opened = co_await connection_.open(address_);
    if (opened) {
        ++connections_;
        log::debug("fm-api connected", {{"switch", options_.address}});
    }
    co_return opened;
}

asio::awaitable<Result<fmapi::Message>> Session::exchange_in_turn(const fmapi::Message& request) {
    const auto connected = co_await connect();
    if (!connected) co_return std::unexpected(connected.error());

    connection_.set_deadline(steady_clock::now() + options_.command_timeout);
    const fmapi::MctpMessage packet{.route = {.destination = options_.switch_endpoint,
                                              .source = options_.own_endpoint,
                                              .tag = static_cast<std::uint8_t>(request.tag & 7u),
                                              .tag_owner = true},
                                    .type = fmapi::MctpType::kFmApi,
                                    .message = request};
    const auto sent = co_await connection_.send(packet);
    if (!sent) co_return std::unexpected(sent.error());

    auto answer = co_await receive_answer(request);
    if (answer)
        timeouts_in_a_row_ = 0;
    else if (answer.error().code == ErrorCode::kTimeout)
        note_timeout();
    co_return answer;
}

asio::awaitable<Result<fmapi::Message>> Session::receive_answer(const fmapi::Message& request) {
    while (true) {
        auto received = co_await connection_.receive();
        if (!received) co_return std::unexpected(received.error());
        fmapi::Message& message = received->message;
        if (!message.is_response || message.tag != request.tag) {
            // Not for us here, or the late answer to a request that was given up.
            if (note_unasked(message)) continue;
            log::debug("fm-api message ignored", {{"switch", options_.address},
                                                  {"message", to_string(message)},
                                                  {"waiting_for_tag", request.tag}});
            continue;
        }
        // Some switches leave the opcode of a response 0.
        if (message.opcode != request.opcode && message.opcode != fmapi::Opcode{}) {
            connection_.close();
            co_return fail(ErrorCode::kProtocol, fmt::format("the answer with tag {} is to {}", message.tag,
                                                             to_string(message.opcode)));
        }
        co_return std::move(message);
    }
}

// True for a notification of the switch. What it carries is not looked at: it is a reason to look, no more.
bool Session::note_unasked(const fmapi::Message& message) {
    if (message.is_response || message.opcode != fmapi::Opcode::kEventNotification) return false;
    if (notify_) notify_();
    return true;
}

// Waits for what the switch says while nothing is asked, from a while after the last command on.
void Session::watch() {
    if (!notify_ || watching_ || !connection_.is_open()) return;
    watching_ = true;
    watch_timer_.expires_after(kWatchPause);
    watch_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!self) return;
        if (error || !self->connection_.is_open())
            self->watching_ = false;
        else
            self->watch_now();
    });
}

void Session::watch_now() {
    connection_.when_readable([weak = weak_from_this()](bool readable) {
        const auto self = weak.lock();
        if (!self) return;
        self->watching_ = false;
        // The exchange under way takes in what there is. A wait that its deadline ended begins anew with it.
        if (readable && !self->exchanging_) self->take_in();
        if (readable) self->watch();
    });
}

void Session::take_in() {
    if (!connection_.still_open()) {
        notify_();
        return;
    }
    take_what_came();
}

void Session::take_what_came() {
    while (connection_.is_open()) {
        const auto message = connection_.next();
        if (!message || !*message) return;
        if (!note_unasked((*message)->message))
            log::debug("fm-api message ignored",
                       {{"switch", options_.address}, {"message", to_string((*message)->message)}});
    }
}

void Session::note_timeout() {
    if (++timeouts_in_a_row_ < kTimeoutsUntilReconnect) return;
    log::warning("fm-api switch does not answer",
                 {{"switch", options_.address}, {"timeouts", timeouts_in_a_row_}});
    connection_.close();
}

}  // namespace memtide::fm
