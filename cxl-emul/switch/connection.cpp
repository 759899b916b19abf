#include "cxl-emul/switch/connection.h"

#include <span>
#include <utility>

#include <sys/socket.h>

#include "common/base/no_throw.h"

namespace memtide::emul {

void Connection::expect_rest(std::chrono::milliseconds time) {
    expect(Owes::kRest, time, "the rest of a message does not come");
}

void Connection::expect_read(std::chrono::milliseconds time) {
    expect(Owes::kRead, time, "an answer is not read");
}

void Connection::expect(Owes what, std::chrono::milliseconds time, const char* why) {
    if (owes_ == what) return;
    owes_ = what;
    last_active_ = Clock::now();
    timer_.expires_after(time);
    timer_.async_wait(
        [weak = weak_from_this(), number = ++debts_, why](const boost::system::error_code& error) {
            const auto self = weak.lock();
            if (!error && self && self->owes_ != Owes::kNothing && self->debts_ == number) self->close(why);
        });
}

void Connection::done() {
    last_active_ = Clock::now();
    if (owes_ != Owes::kNothing) timer_.cancel();
    owes_ = Owes::kNothing;
    send_notification();
}

void Connection::notify(const std::vector<std::byte>& packets) {
    if (!wants_notifications_) return;
    notification_ = packets;
    if (owes_ != Owes::kRead) send_notification();
}

// Without waiting: it is small, and whoever does not read is not worth a queue.
void Connection::send_notification() {
    if (notification_.empty() || !socket_.is_open()) return;
    const std::vector<std::byte> packets = std::exchange(notification_, {});
    const ssize_t sent =
        ::send(socket_.native_handle(), packets.data(), packets.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    tap_.write(fmapi::Sender::kSwitch,
               std::span(packets).first(sent > 0 ? static_cast<std::size_t>(sent) : 0));
    if (sent > 0 && static_cast<std::size_t>(sent) < packets.size()) close("a notification is not read");
}

void Connection::close(std::string why) {
    if (why_closed_.empty()) why_closed_ = std::move(why);
    boost::system::error_code ignored;
    socket_.close(ignored);
    tap_ = {};
    pause_.cancel();
}

boost::asio::awaitable<bool> Connection::pause(std::chrono::milliseconds time) {
    if (time.count() > 0 && socket_.is_open()) {
        pause_.expires_after(time);
        co_await pause_.async_wait(kNoThrow);
    }
    co_return socket_.is_open();
}

std::shared_ptr<Connection> longest_idle(const std::list<std::shared_ptr<Connection>>& connections) {
    std::shared_ptr<Connection> longest;
    for (const auto& connection : connections)
        if (connection->is_idle() && (!longest || connection->last_active() < longest->last_active()))
            longest = connection;
    return longest;
}

}  // namespace memtide::emul
