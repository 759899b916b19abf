#include "fabric-manager/fmapi/session.h"

#include <algorithm>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <fmt/format.h>

#include "common/fmapi/mctp_control.h"
#include "common/log/log.h"
#include "fabric-manager/fmapi/pending.h"

namespace memtide::fm {
namespace asio = boost::asio;

namespace {

// A switch may not answer one command it does not know, but one that answers none is gone: its host may have
// vanished without closing the connection.
constexpr unsigned kTimeoutsUntilReconnect = 2;

std::unexpected<Error> cancelled() { return fail(ErrorCode::kCancelled, "cancelled"); }

std::size_t turns_of(const ClientOptions& options) {
    if (options.in_flight) return *options.in_flight;
    const fmapi::Dialect* dialect = fmapi::find_dialect(options.dialect);
    return dialect != nullptr ? dialect->in_flight : 1;
}

}  // namespace

Session::Session(asio::any_io_executor executor, std::unique_ptr<Transport> transport, ClientOptions options)
    : options_(std::move(options)),
      executor_(executor),
      transport_(std::move(transport)),
      turns_(executor, turns_of(options_)),
      connecting_(executor),
      watchdog_(executor),
      own_endpoint_(options_.own_endpoint),
      dialect_(fmapi::find_dialect(options_.dialect)) {
    transport_->set_user({.received = [this](fmapi::MctpMessage&& message) { received(std::move(message)); },
                          .lost = [this](const Error& error) { lost(error); },
                          .refused =
                              [this](std::uint8_t tag, Error error) {
                                  if (by_tag_[tag] != nullptr)
                                      by_tag_[tag]->end(std::unexpected(std::move(error)));
                              }});
}

Session::~Session() = default;

DialectInUse Session::dialect() const {
    return {.name = dialect_ == nullptr ? std::string() : std::string(dialect_->name),
            .detected = fmapi::find_dialect(options_.dialect) == nullptr,
            .in_flight = turns_.turns()};
}

asio::awaitable<Result<fmapi::Message>> Session::exchange(std::shared_ptr<Session> self, Ask ask) {
    const std::uint64_t closings = self->closings_;
    Result<fmapi::Message> answer = cancelled();
    try {
        const TurnQueue::Turn turn = co_await self->turns_.take();
        if (turn && self->closings_ == closings) {
            const auto began = Clock::now();
            const bool sent = !ask.connection || (*ask.connection == self->connections_ && self->is_ready() &&
                                                  self->transport_->still_open());
            if (sent)
                answer = co_await self->exchange_in_turn(ask);
            else
                answer = fail(ErrorCode::kUnavailable, "not sent: the switch was connected to anew");
            if (sent && self->options_.observer)
                self->options_.observer(ask.opcode, Clock::now() - began, answer.has_value());
        }
    } catch (const boost::system::system_error&) {
        // Asio throws out of a co_await once the coroutine is cancelled, unless told otherwise by its owner.
        answer = cancelled();
    }
    if (!answer && self->closings_ != closings) answer = cancelled();
    if (!answer)
        answer = std::unexpected(std::move(answer.error()).with_context("switch at " + self->address()));
    co_return answer;
}

asio::awaitable<Result<fmapi::Message>> Session::exchange_in_turn(const Ask& ask) {
    fmapi::Message request = fmapi::make_request(ask.opcode, 0, ask.payload);
    for (unsigned repetitions = 0;; ++repetitions) {
        // With requests in flight the connection is being read, and its end does not go unnoticed.
        if (!is_ready() || (in_flight_ == 0 && !transport_->still_open())) {
            const auto connected = co_await connect();
            if (!connected) co_return std::unexpected(connected.error());
        }
        if (silent_about_.contains(ask.opcode))
            co_return fail(ErrorCode::kInvalidArgument, "not sent: the switch does not answer this command");
        request.tag = next_tag();
        auto answer = co_await round_trip(request, ask.repeatable, options_.command_timeout);
        if (answer || answer.error().code == ErrorCode::kCancelled) co_return answer;
        if (answer.error().code == ErrorCode::kTimeout) {
            if (!keeps_silent_about(ask)) {
                note_timeout();
                co_return answer;
            }
            silent_about_.insert(ask.opcode);
            co_return fail(ErrorCode::kInvalidArgument,
                           "no answer from a switch that keeps silent about commands it does not know");
        }
        // The connection broke: whether the command was carried out is not known, so only what may be said
        // twice is said again.
        const bool repeat =
            ask.repeatable && !ask.connection && repetitions < options_.repetitions && !transport_->is_open();
        if (!repeat) co_return answer;
        log::debug(
            "fm-api command repeated",
            {{"switch", options_.address}, {"command", to_string(ask.opcode)}, {"why", answer.error()}});
    }
}

void Session::close() {
    ++closings_;
    watchdog_.cancel();
    watched_.reset();
    transport_->close();
    fail_all({ErrorCode::kCancelled, "cancelled"});
}

std::uint8_t Session::next_tag() {
    do ++last_tag_;
    while (by_tag_[last_tag_] != nullptr);
    return last_tag_;
}

void Session::send(const fmapi::Message& request) {
    fmapi::MctpMessage message;
    message.route = {.destination = assigned_.value_or(options_.switch_endpoint),
                     .source = own_endpoint_,
                     .tag = static_cast<std::uint8_t>(request.tag & 7u),
                     .tag_owner = true};
    message.message = request;
    transport_->send(message);
}

asio::awaitable<Result<fmapi::Message>> Session::round_trip(const fmapi::Message& request, bool repeatable,
                                                            Clock::duration timeout) {
    auto answer = co_await answer_to(request, repeatable, timeout);
    if (answer) {
        timeouts_in_a_row_ = 0;
        if (dialect_ != nullptr && dialect_->silent_about_unknown) answered_.insert(request.opcode);
    }
    co_return answer;
}

asio::awaitable<Result<fmapi::Message>> Session::answer_to(const fmapi::Message& request, bool repeatable,
                                                           Clock::duration timeout) {
    Pending pending(executor_, request.opcode, Clock::now() + timeout);
    const Registration registration(*this, request.tag, pending);
    // A second chance for what a transport may lose, in the middle of the time.
    if (repeatable && transport_->loses_messages()) {
        pending.request = &request;
        pending.repeat_at = Clock::now() + timeout / 2;
    }
    send(request);
    co_await pending.until_ended(*this);
    if (!pending.outcome) co_return cancelled();
    co_return std::move(*pending.outcome);
}

void Session::received(fmapi::MctpMessage&& message) {
    const auto self = shared_from_this();  // whoever is told may let go of the client
    if (message.type == fmapi::MctpType::kControl) return received_control(message);
    if (detecting_) recognise(message);
    fmapi::Message& inside = message.message;
    Pending* const pending = by_tag_[inside.tag];
    if (!inside.is_response) {
        // What a notification carries is not looked at: it is a reason to look, no more.
        if (inside.opcode == fmapi::Opcode::kEventNotification) {
            if (notify_) notify_();
        } else if (log::is_enabled(log::Level::kDebug)) {
            log::debug("fm-api message ignored",
                       {{"switch", options_.address}, {"message", to_string(inside)}});
        }
        return;
    }
    if (pending == nullptr || pending->outcome) {  // the late answer to a request that was given up
        if (log::is_enabled(log::Level::kDebug))
            log::debug("fm-api message ignored",
                       {{"switch", options_.address}, {"message", to_string(inside)}});
        return;
    }
    // Some switches leave the opcode of a response 0.
    if (inside.opcode != pending->opcode && inside.opcode != fmapi::Opcode{}) {
        const Error error{ErrorCode::kProtocol, fmt::format("the answer with tag {} is to {}", inside.tag,
                                                            to_string(inside.opcode))};
        transport_->close();
        pending->end(std::unexpected(error));
        return fail_all({ErrorCode::kUnavailable, "the connection was closed: " + error.message});
    }
    pending->end(std::move(inside));
}

// A switch that is asked, or asks, for an endpoint id.
void Session::received_control(const fmapi::MctpMessage& message) {
    const auto taken = fmapi::accepted_endpoint_id(message.message.payload, 0);
    if (taken) {
        assigned_ = taken;
        if (Pending* const pending = by_tag_[0]; pending != nullptr) pending->end(fmapi::Message{});
        return;
    }
    auto answer = fmapi::answer_control(message.message.payload, own_endpoint_);
    if (!answer) return;
    fmapi::MctpMessage reply;
    reply.route = fmapi::reply_route(message.route);
    reply.type = fmapi::MctpType::kControl;
    reply.message.payload = *std::move(answer);
    transport_->send(reply);
}

void Session::lost(const Error& error) {
    const auto self = shared_from_this();
    if (in_flight_ > 0) return fail_all(error);
    if (error.code == ErrorCode::kUnavailable && notify_) notify_();
}

void Session::fail_all(const Error& error) {
    for (Pending* const pending : by_tag_)
        if (pending != nullptr) pending->end(std::unexpected(error));
}

// One timer for all deadlines, moved only when it has come: commands take far less time than they may, and
// setting a timer is a system call.
void Session::watch(Clock::time_point due) {
    if (watched_ && *watched_ <= due) return;
    watched_ = due;
    watchdog_.expires_at(due);
    watchdog_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self) return;
        self->watched_.reset();
        self->expire();
    });
}

void Session::expire() {
    const auto now = Clock::now();
    for (Pending* const pending : by_tag_) {
        if (pending == nullptr) continue;
        pending->look_at_clock(now);
        if (!pending->outcome) watch(pending->due());
    }
}

// Whether no answer may mean that the switch does not know the command: it answered others.
bool Session::keeps_silent_about(const Ask& ask) const {
    return dialect_ != nullptr && dialect_->silent_about_unknown && ask.repeatable &&
           ask.opcode != fmapi::Opcode::kTunnelManagementCommand && ask.opcode != fmapi::Opcode::kIdentify &&
           !answered_.empty() && !answered_.contains(ask.opcode);
}

void Session::note_timeout() {
    if (++timeouts_in_a_row_ < kTimeoutsUntilReconnect) return;
    log::warning("fm-api switch does not answer",
                 {{"switch", options_.address}, {"timeouts", timeouts_in_a_row_}});
    transport_->close();
    fail_all({ErrorCode::kUnavailable, "the connection was closed: the switch does not answer"});
}

}  // namespace memtide::fm
