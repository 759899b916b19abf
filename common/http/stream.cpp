#include "common/http/stream.h"

#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>

#include "common/base/no_throw.h"

namespace memtide::http {

namespace asio = boost::asio;
using Status = tls::Session::Status;

namespace {

Stream::Error error_of(Status status) {
    if (status == Status::kEnd) return asio::error::eof;
    return asio::error::connection_aborted;
}

bool must_wait(Status status) { return status == Status::kWantRead || status == Status::kWantWrite; }

}  // namespace

asio::awaitable<Stream::Error> Stream::wait_for(Status status) {
    const auto what = status == Status::kWantRead ? Socket::wait_read : Socket::wait_write;
    const auto [error] = co_await socket_.async_wait(what, kNoThrow);
    co_return error;
}

asio::awaitable<Stream::Error> Stream::handshake() {
    for (;;) {
        const Status status = session_->handshake();
        if (status == Status::kDone) co_return Error{};
        if (!must_wait(status)) co_return Error(asio::error::connection_aborted);
        if (const Error error = co_await wait_for(status)) co_return error;
    }
}

asio::awaitable<Stream::Error> Stream::wait_readable() {
    if (session_ && session_->holds_some()) co_return Error{};
    const auto [error] = co_await socket_.async_wait(Socket::wait_read, kNoThrow);
    co_return error;
}

asio::awaitable<std::pair<Stream::Error, std::size_t>> Stream::read_some(asio::mutable_buffer into) {
    using Answer = std::pair<Error, std::size_t>;
    if (!session_) {
        const auto [error, got] = co_await socket_.async_read_some(into, kNoThrow);
        co_return Answer{error, got};
    }
    for (;;) {
        const auto [status, got] = session_->read({static_cast<char*>(into.data()), into.size()});
        if (status == Status::kDone) co_return Answer{Error{}, got};
        if (!must_wait(status)) co_return Answer{error_of(status), 0};
        if (const Error error = co_await wait_for(status)) co_return Answer{error, 0};
    }
}

std::size_t Stream::write_now(std::string_view text, Error& error) {
    error = {};
    if (!session_) return socket_.write_some(asio::buffer(text), error);
    std::size_t put = 0;
    while (put < text.size()) {
        const auto [status, some] = session_->write(text.substr(put));
        put += some;
        if (status == Status::kDone) continue;
        error = must_wait(status) ? Error(asio::error::would_block) : error_of(status);
        break;
    }
    if (put > 0 && error == asio::error::would_block) error = {};
    return put;
}

asio::awaitable<Stream::Error> Stream::write(std::string_view text) {
    if (!session_) {
        const auto [error, put] = co_await asio::async_write(socket_, asio::buffer(text), kNoThrow);
        co_return error;
    }
    while (!text.empty()) {
        const auto [status, put] = session_->write(text);
        text.remove_prefix(put);
        if (status == Status::kDone) continue;
        if (!must_wait(status)) co_return error_of(status);
        if (const Error error = co_await wait_for(status)) co_return error;
    }
    co_return Error{};
}

void Stream::shutdown_send(Error& error) {
    if (session_) session_->shutdown();
    socket_.shutdown(Socket::shutdown_send, error);
}

void Stream::close() {
    Error ignored;
    socket_.close(ignored);
}

}  // namespace memtide::http
