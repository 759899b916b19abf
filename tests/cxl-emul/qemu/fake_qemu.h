#pragma once

#include <array>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cxl-emul/qemu/qmp_client.h"

namespace memtide::emul {

// A QMP server on one end of a socket pair, as a blocking conversation on a thread of its own.
class FakeQemu {
  public:
    using Script = std::function<void(FakeQemu&)>;

    // `script` is the whole conversation; the connection closes when it returns.
    explicit FakeQemu(Script script) {
        std::array<int, 2> fds{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
        client_ = fds[0];
        server_ = fds[1];
        thread_ = std::thread([this, script = std::move(script)] {
            script(*this);
            ::shutdown(server_, SHUT_RDWR);
        });
    }
    ~FakeQemu() {
        if (client_ >= 0) ::close(client_);
        ::shutdown(server_, SHUT_RDWR);
        thread_.join();
        ::close(server_);
    }
    FakeQemu(const FakeQemu&) = delete;
    FakeQemu& operator=(const FakeQemu&) = delete;

    int take_client() { return std::exchange(client_, -1); }

    void say(const std::string& line) { say_piece(line + "\n"); }
    void say_piece(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto sent = ::send(server_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return;
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    // The next command, or null when the client is gone.
    boost::json::value hear() {
        for (;;) {
            if (const auto end = buffer_.find('\n'); end != std::string::npos) {
                auto value = boost::json::parse(buffer_.substr(0, end));
                buffer_.erase(0, end + 1);
                return value;
            }
            std::array<char, 4096> chunk{};
            const auto n = ::recv(server_, chunk.data(), chunk.size(), 0);
            if (n <= 0) return nullptr;
            buffer_.append(chunk.data(), static_cast<std::size_t>(n));
        }
    }
    void answer(const boost::json::value& command, const boost::json::value& result) {
        say(boost::json::serialize(boost::json::object{{"return", result}, {"id", command.at("id")}}));
    }
    void refuse(const boost::json::value& command, const char* why) {
        const boost::json::object error{{"class", "GenericError"}, {"desc", why}};
        say(boost::json::serialize(boost::json::object{{"error", error}, {"id", command.at("id")}}));
    }
    void greet() {
        say(R"({"QMP": {"version": {"qemu": {"major": 10}}, "capabilities": []}})");
        if (const auto command = hear(); !command.is_null()) answer(command, boost::json::object());
    }

  private:
    int client_ = -1;
    int server_ = -1;
    std::string buffer_;
    std::thread thread_;
};

// Runs a coroutine to its end.
inline void run_to_end(boost::asio::io_context& context, boost::asio::awaitable<void> work) {
    std::exception_ptr failure;
    bool done = false;
    boost::asio::co_spawn(context, std::move(work), [&](std::exception_ptr e) {
        failure = std::move(e);
        done = true;
        context.stop();
    });
    context.restart();
    context.run();
    ASSERT_TRUE(done);
    if (failure) std::rethrow_exception(failure);
}

}  // namespace memtide::emul
