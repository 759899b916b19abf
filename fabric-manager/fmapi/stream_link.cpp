#include "fabric-manager/fmapi/stream_link.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

namespace memtide::fm {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kReadSize = 16 * 1024;

Error error_of(std::string_view action, const error_code& ec) {
    if (ec == asio::error::eof)
        return {ErrorCode::kUnavailable, fmt::format("{}: the switch closed the connection", action)};
    return {ErrorCode::kUnavailable, fmt::format("{}: {}", action, ec.message())};
}

}  // namespace

void StreamLink::start(Received received, Lost lost) {
    received_ = std::move(received);
    lost_ = std::move(lost);
    in_.resize(kReadSize);
    read();
}

void StreamLink::set_header_form(const fmapi::HeaderForm& form) {
    format_.header = form;
    assembler_.set_header_form(form);
}

void StreamLink::read() {
    socket_.async_read_some(asio::buffer(in_), [self = shared_from_this()](error_code ec, std::size_t got) {
        if (!self->is_open()) return;
        if (ec) return self->lose(error_of("receive", ec));
        self->take_in(got);
        if (self->is_open()) self->read();
    });
}

void StreamLink::take_in(std::size_t bytes) {
    tap_.write(fmapi::Sender::kSwitch, std::span(in_).first(bytes));
    assembler_.feed(std::span(in_).first(bytes));
    while (is_open()) {
        auto next = assembler_.next();
        if (!next) return lose(std::move(next.error()));
        if (!*next) return;
        received_(std::move(**next));
    }
}

void StreamLink::send(const fmapi::MctpMessage& message) {
    fmapi::append_packets(out_, message, format_);
    if (std::exchange(flush_comes_, true)) return;
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
        self->flush_comes_ = false;
        if (self->is_open() && self->sending_.empty()) self->flush();
    });
}

void StreamLink::flush() {
    if (out_.empty()) return;
    const ssize_t sent =
        ::send(socket_.native_handle(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return lose(error_of("send", error_code(errno, boost::system::system_category())));
    const auto done = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    tap_.write(fmapi::Sender::kManager, std::span(out_).first(done));
    if (done == out_.size()) return out_.clear();
    sending_.assign(out_.begin() + static_cast<std::ptrdiff_t>(done), out_.end());
    out_.clear();
    write_rest();
}

void StreamLink::write_rest() {
    asio::async_write(socket_, asio::buffer(sending_),
                      [self = shared_from_this()](error_code ec, std::size_t sent) {
                          if (!self->is_open()) return;
                          self->tap_.write(fmapi::Sender::kManager, std::span(self->sending_).first(sent));
                          if (ec) return self->lose(error_of("send", ec));
                          self->sending_.clear();
                          self->flush();
                      });
}

// A look at the socket: the event loop may not have come to it yet.
bool StreamLink::still_open() {
    if (!is_open()) return false;
    std::byte one{};
    const ssize_t got = ::recv(socket_.native_handle(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))) return true;
    close();
    return false;
}

void StreamLink::close() {
    error_code ignored;
    socket_.close(ignored);
    tap_ = {};
}

void StreamLink::lose(Error error) {
    const Lost lost = std::move(lost_);
    close();
    if (lost) lost(std::move(error));
}

}  // namespace memtide::fm
