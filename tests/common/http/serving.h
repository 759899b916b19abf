#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/http/client.h"
#include "common/http/router.h"
#include "common/http/server.h"

namespace memtide::http {

using namespace std::chrono_literals;

// The longest a test waits for something that must happen; far beyond what it takes on a busy machine.
inline constexpr auto kPatience = 30s;

inline bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

// A server on a thread of its own, on a free port of 127.0.0.1.
class Serving {
  public:
    // Runs `f` on the server's thread.
    template <typename F>
    auto on_server(F f) {
        std::packaged_task<decltype(f())()> task(std::move(f));
        auto future = task.get_future();
        boost::asio::post(context_, [&task] { task(); });
        return future.get();
    }

    explicit Serving(Router router, ServerLimits limits = {}, ServerSecurity security = {})
        : router_(std::move(router)),
          server_(std::in_place, context_.get_executor(), router_, limits, std::move(security)) {
        const auto listening = server_->listen("127.0.0.1:0");
        EXPECT_TRUE(listening) << (listening ? "" : listening.error().message);
        port_ = server_->port();
        thread_ = std::thread([this] { context_.run(); });
    }
    ~Serving() {
        on_server([this] { server_.reset(); });
        work_.reset();
        thread_.join();
    }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    std::size_t connection_count() {
        return on_server([this] { return server_->connection_count(); });
    }
    std::future<void> stop(std::chrono::milliseconds grace) {
        return boost::asio::co_spawn(context_, server_->stop(grace), boost::asio::use_future);
    }
    Server& server() { return *server_; }

  private:
    Router router_;
    boost::asio::io_context context_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
    std::optional<Server> server_;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

// A client that may misbehave: a plain blocking socket.
class Raw {
  public:
    explicit Raw(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    Raw(Raw&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Raw& operator=(Raw&&) = delete;
    ~Raw() { close(); }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    // False when the server does not want it any more.
    bool send(std::string_view text) {
        while (!text.empty()) {
            const ssize_t put = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
            if (put <= 0) return false;
            text.remove_prefix(static_cast<std::size_t>(put));
        }
        return true;
    }
    // Everything until the server closes; fails the test when it does not.
    std::string read_to_end() {
        while (read_some()) {
        }
        EXPECT_TRUE(ended_) << "still open after: " << text_;
        return text_;
    }
    // Everything so far, once it contains `expected`.
    std::string read_until(std::string_view expected) {
        while (text_.find(expected) == std::string::npos && read_some()) {
        }
        EXPECT_NE(text_.find(expected), std::string::npos) << "got: " << text_;
        return text_;
    }
    bool wait_readable(std::chrono::milliseconds limit) {
        pollfd descriptor{.fd = fd_, .events = POLLIN, .revents = 0};
        return ::poll(&descriptor, 1, static_cast<int>(limit.count())) > 0;
    }
    void set_receive_buffer(int bytes) { ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); }
    // Ends with a reset in place of an orderly close.
    void reset() {
        const linger abort{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
        close();
    }

  private:
    bool read_some() {
        if (!wait_readable(kPatience)) return false;
        char piece[16384];
        const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
        ended_ = got <= 0;
        if (got > 0) text_.append(piece, static_cast<std::size_t>(got));
        return got > 0;
    }
    int fd_;
    bool ended_ = false;
    std::string text_;
};

// One exchange with a client of its own.
inline Result<ClientResponse> exchange(const std::string& url, ClientRequest request) {
    boost::asio::io_context context;
    Client client(context.get_executor(), url);
    auto future = boost::asio::co_spawn(context, client.send(std::move(request)), boost::asio::use_future);
    context.run();
    return future.get();
}

inline Result<ClientResponse> get(const std::string& url, std::string target) {
    ClientRequest request;
    request.target = std::move(target);
    return exchange(url, std::move(request));
}

// Answers with method, path and body.
inline boost::asio::awaitable<Response> echo(Request request) {
    Response response;
    response.headers["Content-Type"] = "text/plain";
    response.body = request.method + " " + request.path + " " + request.body;
    co_return response;
}

inline Router echo_router() {
    Router router;
    for (const char* method : {"GET", "POST", "PUT", "DELETE"}) router.add(method, "/echo", echo);
    return router;
}

}  // namespace memtide::http
