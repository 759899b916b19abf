#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "fabric-manager/fmapi/session.h"

namespace memtide::fm {

// A request in flight, on the frame of the coroutine that waits for it.
struct Session::Pending {
    Pending(const boost::asio::any_io_executor& executor, fmapi::Opcode asked, Clock::time_point until)
        : opcode(asked), deadline(until), ended(executor, Clock::time_point::max()) {}

    fmapi::Opcode opcode;
    Clock::time_point deadline;
    std::optional<Clock::time_point> repeat_at;
    const fmapi::Message* request = nullptr;  // what is sent again at repeat_at
    bool wanted_again = false;
    std::optional<Result<fmapi::Message>> outcome;
    boost::asio::steady_timer ended;  // cancelled to wake the coroutine

    void end(Result<fmapi::Message> how) {
        if (outcome) return;
        outcome = std::move(how);
        ended.cancel();
    }
    // Until end(), or the caller is cancelled: then there is no outcome.
    boost::asio::awaitable<void> until_ended(Session& session) {
        while (!outcome) {
            session.watch(due());
            co_await ended.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
            if (!outcome && !std::exchange(wanted_again, false)) co_return;
            if (!outcome) session.send(*request);
        }
    }
    [[nodiscard]] Clock::time_point due() const { return repeat_at.value_or(deadline); }
    void look_at_clock(Clock::time_point now) {
        if (outcome || now < due()) return;
        if (now >= deadline) return end(fail(ErrorCode::kTimeout, "receive: no answer in time"));
        repeat_at.reset();
        wanted_again = true;
        ended.cancel();
    }
};

class Session::Registration {
  public:
    Registration(Session& session, std::uint8_t tag, Pending& pending) : session_(session), tag_(tag) {
        session_.by_tag_[tag] = &pending;
        ++session_.in_flight_;
    }
    ~Registration() {
        session_.by_tag_[tag_] = nullptr;
        --session_.in_flight_;
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

  private:
    Session& session_;
    std::uint8_t tag_;
};

}  // namespace memtide::fm
